#include "import/onnx/axis_formula.h"

#include <gtest/gtest.h>

#include <random>

namespace orknn::importer::onnx {
namespace {

// The shape after the formula, or the reason why it does not fit.
std::string applied(const std::string& formula, const ir::Dims& dims) {
  const auto parsed = parse_axis_formula(formula);
  if (!parsed) return parsed.status().to_string();
  const auto plan = apply_axis_formula(*parsed, dims);
  return plan ? to_string(plan->after) : plan.status().to_string();
}

TEST(AxisFormula, GivesTheNewShape) {
  const struct {
    ir::Dims dims;
    std::string formula, after;
  } cases[] = {
      {{1, 512}, "a,b->a,b,1,1", "[1, 512, 1, 1]"},
      {{6, 20, 96}, "a,b,c->1,a,b,c", "[1, 6, 20, 96]"},
      {{1, 3, 224, 320}, "a,b,c,d->a,c,d,b", "[1, 224, 320, 3]"},
      {{2, 16, 1, 64}, "a,b,1,d->ab,d", "[32, 64]"},
      {{1, 64, 49}, "a,bc,d[b=8]->a,b,d,c", "[1, 8, 49, 8]"},
      {{1, 4, 12, 7, 5}, "a,b,c,d,e->ab,c,de,1", "[4, 12, 35, 1]"},
      {{12, 10}, "ab,c[a=3]->b,ac", "[4, 30]"},
      {{2, 24, 9}, "a,bcd,e[b=2,d=4]->ad,e,cb", "[8, 9, 6]"},
      {{5, 1, 6, 7}, "a,1,b,c->c,ab", "[7, 30]"},
      {{2, 3, 4}, "a , b , c -> c , 1 , b a", "[4, 1, 6]"},
      {{3, 64}, "a,bc[b=2,c=32]->ab,c,1,1", "[6, 32, 1, 1]"},
      {{-1, 8, 16}, "xy,u,v[x=4]->x,u,v,y", "[4, 8, 16, ?]"},
      {{-1, -1, 16}, "ab,c,d[a=2,b=6,c=8]->ab,d,c", "[12, 16, 8]"},
      {{1, 1, 400}, "1,1,a->a,1,1,1", "[400, 1, 1, 1]"},
      {{10, 4}, "q,b->b,q", "[4, 10]"},
      {{2, 3, 4}, "a,b,c,->c,b,a", "[4, 3, 2]"},
  };
  for (const auto& c : cases) EXPECT_EQ(applied(c.formula, c.dims), c.after) << c.formula;
}

TEST(AxisFormula, RefusesWithAReason) {
  const struct {
    ir::Dims dims;
    std::string formula, reason;
  } cases[] = {
      {{2, 3, 4}, "a,b,c", "one '->'"},
      {{2, 3}, "a,b->c,a,b->d", "one '->'"},
      {{4, 2, 8}, "a,2,c->a,c", "the field '2'"},
      {{1, 2, 3, 4}, "a,b,c,d->a,b,c", "'d' is missing"},
      {{1, 2, 3, 4}, "a,b,c->a,b,c", "another rank"},
      {{2, 3}, "A,b->b,A", "the field 'A'"},
      {{3, 3}, "a,a->a,a", "twice on the left"},
      {{3, 4}, "a,b->a,b,c", "'c' of the right side is not known"},
      {{3, 4}, "a,b->a,a,b", "twice on the right"},
      {{12, 10}, "ab,c->a,b,c", "several axes of unknown size"},
      {{30, 10}, "pq,r[p=7]->p,q,r", "do not fit"},
      {{12, 10}, "ab,c[a=4,b=4]->a,b,c", "do not fit"},
      {{2, 3, 4}, "a,1,c->a,c", "dimension 1 is 1"},
      {{2, 3}, "a,b[z=2]->b,a", "no field has it"},
      {{2, 3}, "a,b->b[a=2],a", "belong to the left side"},
      {{2, 3}, "a.b->b.a", "the field 'a.b'"},
      {{2, 1, 3}, "a,,b->a,b", "empty"},
      {{-1, 8, 16}, "ab,c,d->a,c,d,b", "several axes of unknown size"},
      {{2, 3}, "a,b[a=x]->b,a", "states no size"},
      {{2, 3}, "a1,b->b,a", "the field 'a1'"},
      {{2, 3}, "a,b[a=2,a=2]->b,a", "stated twice"},
      {{2, 3}, "a,b[a=0]->b,a", "states no size"},
      {{-1, 3}, "ab,c[a=4611686018427387904,b=4]->a,b,c", "too large"},
      {{2}, "->a", "empty"},
      {{2}, "", "one '->'"},
      {{2}, "a[a=2->a", "end the left side"},
  };
  for (const auto& c : cases)
    EXPECT_NE(applied(c.formula, c.dims).find(c.reason), std::string::npos) << c.formula << ": " << applied(c.formula, c.dims);
}

TEST(AxisFormula, DamageDoesNoHarm) {
  const std::string letters = "ab1,[]=-> 9z.A";
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text = "ab,c[a=3]->b,ac";
    for (int k = 0; k < 3; ++k) text[random() % text.size()] = letters[random() % letters.size()];
    EXPECT_FALSE(applied(text, {12, 10}).empty());
  }
}

}  // namespace
}  // namespace orknn::importer::onnx
