// Models of several shape sets (dynamic_input) through the C API: which sets there are, and which one a caller means.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/public_api.h"
#include "runtime/session.h"

namespace orknn::runtime {

// The shapes of input `range.index`, which exists: one row per set, in the order of the sets.
void fill_range(const Session& session, rknn_input_range& range);

// The set in which every input named by an entry has the entry's shape; each entry is another input's. 4-D shapes are NHWC, or
// NCHW where `fmt` says so. Entries without a name go by their index alone.
std::optional<size_t> find_shape_set(const Session& session, std::span<const rknn_tensor_attr> wanted);

// For messages: "images [1,224,224,3] NHWC, ids [1,10]", and all sets of a model with "; " between them.
std::string shapes_text(std::span<const rknn_tensor_attr> attrs);
std::string shape_sets_text(const Session& session);

}  // namespace orknn::runtime
