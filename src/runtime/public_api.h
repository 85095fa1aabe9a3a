// The public headers, whose functions are visible in the library. Files of this room include them through this one: whoever
// includes rknn_api.h first decides about visibility.
#pragma once

#pragma GCC visibility push(default)
#include "openrknn.h"
#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
#pragma GCC visibility pop
