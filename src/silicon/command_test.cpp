#include "silicon/command.h"

#include <gtest/gtest.h>

#include "silicon/lint.h"
#include "silicon/recipe.h"

namespace orknn::silicon {
namespace {

Stream pointwise() {
  ConvLayer l;
  l.height = l.out_height = 6;
  l.width = l.out_width = 8;
  l.channels = l.kernels = 32;
  l.out_multiplier = 0x4000;
  l.out_shift = 20;
  return conv_streams(l, {0x10000, 0x20000, 0x30000, 0x40000, 0}).value().front();
}

TEST(Command, WordsKeepTargetRegisterAndValue) {
  const Command c{Target::Dpu, reg::DPU_OUT_CVT_OFFSET, 0xffffff80};
  EXPECT_EQ(encode(c), 0x1001ffffff804080u);
  const Command back = decode(encode(c));
  EXPECT_EQ(back.target, c.target);
  EXPECT_EQ(back.offset, c.offset);
  EXPECT_EQ(back.value, c.value);
}

TEST(Command, RegistersAreInOrderAndTheirFieldsDoNotOverlap) {
  uint16_t last = 0;
  for (const RegisterInfo& r : all_registers()) {
    EXPECT_GT(r.offset, last) << r.name;
    last = r.offset;
    uint32_t seen = 0;
    for (const NamedField& f : r.fields) {
      EXPECT_EQ(seen & f.field.mask(), 0u) << r.name << "." << f.name;
      seen |= f.field.mask();
    }
  }
}

TEST(Command, FieldsKeepTheirNeighboursAndNegativeNumbers) {
  Registers r;
  r.set(field::CNA_DATA_SIZE0_WIDTH, 2047);
  r.set(field::CNA_DATA_SIZE0_HEIGHT, 5);
  EXPECT_EQ(r.get(reg::CNA_DATA_SIZE0), 0x07ff0005u);
  r.set(field::CNA_DMA_CON2_SURF_STRIDE, -12);
  EXPECT_EQ(r.get(reg::CNA_DMA_CON2), 0x0ffffff4u);
  EXPECT_EQ(r.get_signed(field::CNA_DMA_CON2_SURF_STRIDE), -12);
}

// Kernel and chaining word count alike only for lengths of 2 modulo 4.
TEST(Command, TasksHaveALengthThatBothWaysOfCountingAgreeOn) {
  const Stream s = pointwise();
  EXPECT_EQ(s.size() % 4, 2u);
  EXPECT_EQ(register_amount(130), 64u);
  EXPECT_EQ(register_amount(126), 62u);
  EXPECT_EQ(s[s.size() - 1], encode({Target::Enable, reg::PC_OPERATION_ENABLE, 0x1d}));
  EXPECT_EQ(s[s.size() - 2], 0x0041000000000000u);
}

TEST(Command, DisassemblyNamesRegistersAndFields) {
  const std::string text = disassemble(pointwise());
  EXPECT_NE(text.find("CNA_DATA_SIZE0  HEIGHT=6  WIDTH=8"), std::string::npos) << text;
  EXPECT_NE(text.find("mark"), std::string::npos);
  EXPECT_NE(text.find("PC_OPERATION_ENABLE"), std::string::npos);
}

// The stream with one register given another value.
Stream with(Stream s, uint16_t offset, uint32_t value) {
  for (uint64_t& word : s)
    if (decode(word).offset == offset && word >> 48 > 0x101) word = encode({decode(word).target, offset, value});
  return s;
}
std::string problem(const Stream& s) {
  const Status checked = check_streams(std::span(&s, 1));
  return checked ? std::string() : checked.to_string();
}

TEST(Lint, NamesEachKnownTrap) {
  const Stream good = pointwise();
  EXPECT_EQ(problem(good), "");
  struct Trap {
    uint16_t offset;
    uint32_t value;
    const char* text;
  };
  const Trap traps[] = {
      {reg::RDMA_FEATURE_MODE_CFG, 0x7800, "RDMA_FEATURE_MODE_CFG"},  // the main reader stays on and waits
      {reg::DPU_SURFACE_ADD, 6 * 8 * 16, "SURFACE_ADD"},              // only the first plane is right
      {reg::DPU_BS_OW_CFG, 0x36c, "writer's sizes"},                  // depthwise geometry on a direct program
      {reg::CNA_CBUF_CON0, 0x1b1, "FC_DATA_BANK"},                    // garbage
      {reg::CNA_CBUF_CON0, 0xc1, "banks"},                            // thirteen banks
      {reg::CNA_CBUF_CON0, 0x10b1, "DATA_REUSE"},
      {reg::CNA_CBUF_CON1, 3, "DATA_ENTRIES"},
      {reg::CNA_DATA_SIZE0, 0x00080007, "CNA_FC_DATA_SIZE0.HEIGHT"},
      {reg::CNA_WEIGHT_SIZE2, 0x0101001f, "not even"},
      {reg::CNA_FEATURE_DATA_ADDR, 0x10008, "multiple of 16"},
      {reg::DPU_OUT_CVT_SCALE, 0x8000, "15 bits"},  // the carry that a generator forgets
      {reg::DPU_OUT_CVT_SHIFT, 0x40000000 | 4095, "6 bits"},
      {reg::RDMA_BRDMA_CFG, 0, "disagree about the bias"},
      {reg::DPU_S_POINTER, 0, "DPU_S_POINTER"},
      {reg::CNA_PAD_CON0, 0x10, "padding"},
  };
  for (const Trap& t : traps)
    EXPECT_NE(problem(with(good, t.offset, t.value)).find(t.text), std::string::npos)
        << t.text << ": " << problem(with(good, t.offset, t.value));
}

TEST(Lint, RefusesOtherChipsAndBrokenTails) {
  Stream other = pointwise();
  other[3] = encode({Target::Cmac, 0x2004, 0xe});
  EXPECT_NE(problem(other).find("other chips"), std::string::npos);
  other[3] = encode({Target::Dpu, reg::CNA_CONV_CON1, 0});
  EXPECT_NE(problem(other).find("another block"), std::string::npos);
  other[3] = encode({Target::Cna, 0x1018, 0});
  EXPECT_NE(problem(other).find("no such register"), std::string::npos);
  Stream tail = pointwise();
  tail.back() = encode({Target::Enable, reg::PC_OPERATION_ENABLE, 0x0d});
  EXPECT_NE(problem(tail).find("enable word"), std::string::npos);
  tail.pop_back();
  EXPECT_NE(problem(tail), "");
  EXPECT_NE(problem({}), "");
  Stream missing = pointwise();
  missing[5] = 0;
  EXPECT_NE(problem(missing).find("is not written"), std::string::npos);
}

TEST(Lint, WeightsAreReusedOnlyWhereTheyWereLoaded) {
  const Stream first = pointwise(), again = with(pointwise(), reg::CNA_CBUF_CON0, 0x20b1);
  EXPECT_NE(problem(again).find("reuses weights"), std::string::npos);
  const Stream both[] = {first, again};
  EXPECT_TRUE(check_streams(both));
}

TEST(Lint, AccessesStayInsideOfBuffers) {
  const Result<DecodedTask> task = decode_task(pointwise());
  ASSERT_TRUE(task);
  std::vector<std::byte> bytes(64 * 1024);
  DeviceMemory memory;
  ASSERT_TRUE(memory.map("input", 0x10000, std::span(bytes).first(6 * 8 * 32 - 1)));
  ASSERT_TRUE(memory.map("weights", 0x20000, std::span(bytes).first(1024)));
  ASSERT_TRUE(memory.map("bias", 0x30000, std::span(bytes).first(128)));
  const auto problems = lint(*task, memory);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("the input"), std::string::npos);
  EXPECT_NE(problems[1].find("the output"), std::string::npos);
  EXPECT_FALSE(memory.map("overlap", 0x20010, std::span(bytes).first(16)));
}

}  // namespace
}  // namespace orknn::silicon
