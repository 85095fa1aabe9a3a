// Every family of streams with fixed operands, on a unit: what a board's owner runs once to show which of them are right.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "silicon/unit.h"

namespace orknn::silicon {

// One element that is not what it should be; values as hexadecimal digits, the highest first.
struct WrongElement {
  int64_t row = 0, column = 0, channel = 0;
  std::string expected, found;
};
inline constexpr size_t kMostWrongElements = 64;  // of a family that are kept

struct FamilyResult {
  enum class State : uint8_t {
    Equal,
    Different,
    Failed,   // the unit reported an error
    LeftOut,  // the unit's driver cannot run it
  };
  std::string family;
  State state = State::Equal;
  size_t tasks = 0, elements = 0, different = 0;
  std::vector<WrongElement> wrong;  // the first of those that differ, in the order rows, columns, channels
  uint64_t checksum = 0;            // of the result, checksum64
  double milliseconds = 0;          // from the submission to the end
  std::string detail;               // of Failed and LeftOut
};
std::string_view state_name(FamilyResult::State state);

using MakeUnit = std::function<Result<std::unique_ptr<Unit>>()>;
// Each family gets a unit of its own, so that one that hangs does not spoil the next. What is expected is stated by checksums
// that are part of this program, and by the chip model where elements differ.
std::vector<FamilyResult> check_families(const MakeUnit& make_unit);

// The checksums that the program expects, one per family.
struct ExpectedFamily {
  std::string_view name;
  uint64_t checksum = 0;
};
std::vector<ExpectedFamily> expected_families();

}  // namespace orknn::silicon
