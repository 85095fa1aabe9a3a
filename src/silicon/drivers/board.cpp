#include "silicon/drivers/board.h"

#include "silicon/drivers/rknpu.h"
#include "silicon/drivers/rocket.h"

namespace orknn::silicon {
namespace {

// Nodes of other drivers, and those that this user may not open, are passed over; the last refusal is kept for the report.
Result<std::unique_ptr<DeviceFile>> find_device(Kernel& kernel, const std::string& folder, std::string_view prefix,
                                                std::string_view driver) {
  Status refused;
  for (const std::string& name : kernel.list(folder)) {
    if (!name.starts_with(prefix)) continue;
    auto file = DeviceFile::open(kernel, folder + "/" + name);
    if (!file)
      refused = file.status();
    else if ((*file)->driver() == driver)
      return file;
  }
  if (!refused) return refused;
  return std::unique_ptr<DeviceFile>();
}

// The device tree lists "vendor,board", "vendor,chip", each with a final zero. Letters after the chip name a variant of it.
bool is_board_of(Kernel& kernel, const std::string& chip) {
  const std::string compatible = kernel.read("/proc/device-tree/compatible");
  return compatible.find("rockchip," + chip) != std::string::npos;
}
}  // namespace

Result<std::unique_ptr<Unit>> open_board(const std::string& chip, Kernel& kernel) {
  if (!is_board_of(kernel, chip)) return std::unique_ptr<Unit>();
  auto rocket = find_device(kernel, "/dev/accel", "accel", "rocket");
  if (rocket && *rocket) return make_rocket_unit(std::move(*rocket));
  ORKNN_TRY_ASSIGN(std::unique_ptr<DeviceFile> rknpu, find_device(kernel, "/dev/dri", "renderD", "rknpu"));
  if (rknpu) return make_rknpu_unit(std::move(rknpu));
  if (!rocket) return std::move(rocket).status();
  return std::unique_ptr<Unit>();
}

}  // namespace orknn::silicon
