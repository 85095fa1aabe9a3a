// Compiled once for each library; ORKNN_ZERO_COPY_ONLY makes it the one of librknnmrt (cmake/librknnrt.cmake).
#include "runtime/library_identity.h"

#include <algorithm>

namespace orknn::runtime {
namespace {

#ifdef ORKNN_ZERO_COPY_ONLY
#define ORKNN_LIBRARY "librknnmrt"
// What the vendor's table of functions does not have on RV1103 and RV1106.
constexpr std::string_view kRefused[] = {
    "rknn_dup_context",
    "rknn_inputs_set",
    "rknn_outputs_get",
    "rknn_outputs_release",
    "rknn_set_batch_core_num",
    "rknn_set_core_mask",
    "rknn_wait",
    "rknn_create_mem_from_mb_blk",
    "rknn_set_input_shape",
    "rknn_set_input_shapes",
    "rknn_matmul_create",
    "rknn_matmul_create_dynamic_shape",
    "rknn_matmul_create_dyn_shape",
    "rknn_matmul_set_io_mem",
    "rknn_matmul_set_core_mask",
    "rknn_matmul_set_quant_params",
    "rknn_matmul_get_quant_params",
    "rknn_matmul_set_dynamic_shape",
    "rknn_matmul_run",
    "rknn_matmul_destroy",
    "rknn_B_normal_layout_to_native_layout",
    "rknn_register_custom_ops",
    "rknn_custom_op_get_op_attr",
};
#else
#define ORKNN_LIBRARY "librknnrt"
#endif

// People look for this text in the library file, so it must be there in one piece.
[[gnu::used]] const char kVersionText[] = ORKNN_LIBRARY " version: " ORKNN_VERSION " (OpenRKNN)";
}  // namespace

std::string_view library_version_text() { return kVersionText; }

bool library_offers([[maybe_unused]] std::string_view function) {
#ifdef ORKNN_ZERO_COPY_ONLY
  return std::find(std::begin(kRefused), std::end(kRefused), function) == std::end(kRefused);
#else
  return true;
#endif
}

}  // namespace orknn::runtime
