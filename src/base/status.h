// The one error type of the project. A Status says what went wrong in fields a user can act on; whoever knows a
// field adds it on the way up. No exceptions cross a room's border. It is a value: annotating a copy leaves the original as it
// was. A Status without error is one null pointer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace orknn {

// Every code maps to one public RKNN_ERR_* value (docs/errors.md, runtime/error_codes.cpp).
enum class Code {
  Ok,
  Fail,             // anything without a better name
  InvalidArgument,  // the caller passed something illegal
  NotFound,         // a file, node, tensor or option that does not exist
  Io,               // reading or writing failed
  InvalidModel,     // bytes that are not a valid model
  Unsupported,      // valid, but outside of what we can do
  ShapeMismatch,    // tensor shapes that do not fit together
  OutOfMemory,
  PlatformMismatch,  // made for another chip
  Internal,          // our own bug
};

std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;
  static Status ok() { return {}; }
  // `message` is the problem in one sentence without a final full stop.
  static Status error(Code code, std::string message);

  bool is_ok() const { return !problems_; }
  explicit operator bool() const { return is_ok(); }
  Code code() const { return problems_ ? problems_->front().code : Code::Ok; }  // of the first problem

  // Each returns *this, so that a caller can write `return status.node(name, op)`. A field that is already set is kept:
  // the innermost caller knows best. Calling them on an ok Status does nothing. model, stage and node hold for all problems,
  // the others for the first.
  Status& model(std::string_view text);
  Status& stage(std::string_view text);
  Status& node(std::string_view name, std::string_view op);
  Status& expected(std::string text);
  Status& found(std::string text);
  Status& hint(std::string text);
  // Adds another problem found in the same run (importers and placement report everything at once).
  Status& also(const Status& other);

  // "yolo.onnx: import: node 'Resize_93' (Resize): message; expected ..., found .... Hint: ...", one line per problem.
  std::string to_string() const;
  const std::string& message() const;
  // How many problems this Status reports.
  size_t count() const;

 private:
  struct Problem {
    Code code = Code::Fail;
    std::string message, model, stage, node, op, expected, found, hint;
    std::string line() const;
  };
  std::unique_ptr<std::vector<Problem>> problems_;  // null when ok, else at least one
};

// Shorthands for the usual cases.
Status invalid_argument(std::string message);
Status invalid_model(std::string message);
Status unsupported(std::string message);
Status shape_mismatch(std::string message);
Status io_error(std::string message);
Status internal_error(std::string message);

// A value or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    ORKNN_ASSERT(!status_.is_ok(), "a Result without value carries an error");
  }
  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& value() {
    ORKNN_ASSERT(value_.has_value(), "value() of a failed Result");
    return *value_;
  }
  const T& value() const {
    ORKNN_ASSERT(value_.has_value(), "value() of a failed Result");
    return *value_;
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace orknn

// Returns the error of `expr` (a Status) to the caller, if it is one.
#define ORKNN_TRY(expr)                                                               \
  do {                                                                                \
    if (::orknn::Status orknn_status_ = (expr); !orknn_status_) return orknn_status_; \
  } while (0)

#define ORKNN_CONCAT_(a, b) a##b
#define ORKNN_CONCAT(a, b) ORKNN_CONCAT_(a, b)
// `ORKNN_TRY_ASSIGN(auto x, f())`: declares x from a Result or returns its error.
#define ORKNN_TRY_ASSIGN(decl, expr) ORKNN_TRY_ASSIGN_(ORKNN_CONCAT(orknn_result_, __LINE__), decl, expr)
#define ORKNN_TRY_ASSIGN_(tmp, decl, expr)  \
  auto tmp = (expr);                        \
  if (!tmp) return std::move(tmp).status(); \
  decl = std::move(*tmp)
