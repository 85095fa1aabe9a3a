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

}  // namespace orknn::runtime
