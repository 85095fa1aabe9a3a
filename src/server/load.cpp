#include "server/load.h"

#include <algorithm>

namespace orknn::server {
using std::chrono::duration_cast;
using std::chrono::seconds;

namespace {
int64_t second_of(Load::Time time) { return duration_cast<seconds>(time.time_since_epoch()).count(); }
Load::Time begin_of(int64_t second) { return Load::Time(seconds(second)); }
}  // namespace

void Load::begin(size_t core, Time now) {
  const std::lock_guard lock(mutex_);
  began_[core] = now;
}

void Load::end(size_t core, Time now) {
  const std::lock_guard lock(mutex_);
  if (began_[core]) add(std::max(*began_[core], window_begin(now)), now);
  began_[core].reset();
}

// Whole seconds of the clock, the one that is under way included.
Load::Time Load::window_begin(Time now) const { return std::max(start_, begin_of(second_of(now) - kWindow.count() + 1)); }

void Load::add(Time from, Time to) {
  while (from < to) {
    const int64_t number = second_of(from);
    const Time until = std::min(to, begin_of(number + 1));
    Second& second = seconds_[static_cast<size_t>(number) % seconds_.size()];
    if (second.number != number) second = {number, {}};
    second.busy += until - from;
    from = until;
  }
}

double Load::percent(Time now) const {
  const std::lock_guard lock(mutex_);
  const Time from = window_begin(now);
  std::chrono::steady_clock::duration busy{};
  for (const Second& second : seconds_)
    if (second.number >= second_of(from) && second.number <= second_of(now)) busy += second.busy;
  for (const std::optional<Time>& began : began_)
    if (began && *began < now) busy += now - std::max(*began, from);
  return now > from ? 100.0 * static_cast<double>(busy.count()) / static_cast<double>((now - from).count()) : 0;
}

}  // namespace orknn::server
