#include "toolkit/table.h"

#include <gtest/gtest.h>

namespace orknn::toolkit {

TEST(Table, LongNamesLoseTheirMiddleWhenTheTableHasToFit) {
  Table table({{"name", Table::Align::Left, true}, {"bytes", Table::Align::Right}});
  table.add({"backbone/stage_4/block_2/conv_3/weights", "1024"});
  table.add({"x", "7"});
  EXPECT_EQ(table.to_text(),
            "name                                     bytes\n"
            "---------------------------------------  -----\n"
            "backbone/stage_4/block_2/conv_3/weights   1024\n"
            "x                                            7\n");
  EXPECT_EQ(table.to_text(30),
            "name                     bytes\n"
            "-----------------------  -----\n"
            "backbone/st…v_3/weights   1024\n"
            "x                            7\n");
}

TEST(Table, WordsGoOnInTheNextLine) {
  Table table({{"pass"}, {.title = "what it does", .may_wrap = true}});
  table.add({"fold_constants", "computes everything that does not depend on the inputs"});
  table.add({"x", ""});
  EXPECT_EQ(table.to_text(44),
            "pass            what it does\n"
            "--------------  ----------------------------\n"
            "fold_constants  computes everything that\n"
            "                does not depend on the\n"
            "                inputs\n"
            "x\n");
}

TEST(Table, WordsWithoutRoomGoBelowTheirRow) {
  Table table({{"platform"}, {"cores", Table::Align::Right}, {.title = "", .may_wrap = true}});
  table.add({"rk3588", "3", ""});
  table.add({"rv1103b", "1", "unknown: NPU clock, DDR clock"});
  EXPECT_EQ(table.to_text(30),
            "platform  cores\n"
            "--------  -----\n"
            "rk3588        3\n"
            "rv1103b       1\n"
            "    unknown: NPU clock, DDR\n"
            "    clock\n");
}

TEST(Table, ColumnsAreDroppedAndNamed) {
  Table table({{"name", Table::Align::Left, true}, {.title = "reads", .may_drop = true}, {.title = "writes", .may_drop = true}});
  table.add({"a_very_long_name", "1", "2"});
  EXPECT_EQ(table.to_text(31),
            "name              reads  writes\n"
            "----------------  -----  ------\n"
            "a_very_long_name  1      2\n");
  EXPECT_EQ(table.to_text(22),
            "name             reads\n"
            "---------------  -----\n"
            "a_very_…ng_name  1\n"
            "(no room for: writes)\n");
}

TEST(Table, ANameFitsItsLine) {
  EXPECT_EQ(name_in_line("backbone/stage_4/block_2", 40, 20), "backbone/s…4/block_2");
  EXPECT_EQ(name_in_line("backbone/stage_4/block_2", 0, 20), "backbone/stage_4/block_2");
  EXPECT_EQ(name_in_line("x", 10, 20), "x");
}

TEST(Table, NamesOfAModelCannotMoveTheCursor) {
  Table table({{"op"}});
  table.add({"No\x1b[31mSuch"});
  EXPECT_NE(table.to_text().find("No\\x1b[31mSuch"), std::string::npos);
}

}  // namespace orknn::toolkit
