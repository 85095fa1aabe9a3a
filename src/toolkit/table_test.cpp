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

TEST(Table, NamesOfAModelCannotMoveTheCursor) {
  Table table({{"op"}});
  table.add({"No\x1b[31mSuch"});
  EXPECT_NE(table.to_text().find("No\\x1b[31mSuch"), std::string::npos);
}

}  // namespace orknn::toolkit
