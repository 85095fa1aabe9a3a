#include "runtime/error_codes.h"

#include "runtime/public_api.h"

namespace orknn::runtime {

int rknn_code(Code code) {
  switch (code) {
    case Code::Ok: return RKNN_SUCC;
    case Code::InvalidArgument: return RKNN_ERR_PARAM_INVALID;
    case Code::InvalidModel: return RKNN_ERR_MODEL_INVALID;
    case Code::Unsupported: return RKNN_ERR_MODEL_INVALID;
    case Code::ShapeMismatch: return RKNN_ERR_MODEL_INVALID;
    case Code::OutOfMemory: return RKNN_ERR_MALLOC_FAIL;
    case Code::PlatformMismatch: return RKNN_ERR_TARGET_PLATFORM_UNMATCH;
    case Code::NotFound: return RKNN_ERR_FAIL;
    case Code::Io: return RKNN_ERR_FAIL;
    case Code::Internal: return RKNN_ERR_FAIL;
    case Code::Fail: return RKNN_ERR_FAIL;
  }
  return RKNN_ERR_FAIL;
}

std::string rknn_code_name(int code) {
  switch (code) {
    case RKNN_SUCC: return "RKNN_SUCC";
    case RKNN_ERR_FAIL: return "RKNN_ERR_FAIL";
    case RKNN_ERR_TIMEOUT: return "RKNN_ERR_TIMEOUT";
    case RKNN_ERR_DEVICE_UNAVAILABLE: return "RKNN_ERR_DEVICE_UNAVAILABLE";
    case RKNN_ERR_MALLOC_FAIL: return "RKNN_ERR_MALLOC_FAIL";
    case RKNN_ERR_PARAM_INVALID: return "RKNN_ERR_PARAM_INVALID";
    case RKNN_ERR_MODEL_INVALID: return "RKNN_ERR_MODEL_INVALID";
    case RKNN_ERR_CTX_INVALID: return "RKNN_ERR_CTX_INVALID";
    case RKNN_ERR_INPUT_INVALID: return "RKNN_ERR_INPUT_INVALID";
    case RKNN_ERR_OUTPUT_INVALID: return "RKNN_ERR_OUTPUT_INVALID";
    case RKNN_ERR_DEVICE_UNMATCH: return "RKNN_ERR_DEVICE_UNMATCH";
    case RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL: return "RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL";
    case RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION: return "RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION";
    case RKNN_ERR_TARGET_PLATFORM_UNMATCH: return "RKNN_ERR_TARGET_PLATFORM_UNMATCH";
    default: return std::to_string(code);
  }
}

}  // namespace orknn::runtime
