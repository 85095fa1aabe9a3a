#include "base/status.h"

#include <cstdio>
#include <cstdlib>

#include "base/printable_line.h"

namespace orknn {

void assertion_failed(const char* condition, const char* invariant, const char* file, int line) {
  std::fprintf(stderr, "openrknn: internal error: %s (%s) at %s:%d\n", invariant, condition, file, line);
  std::abort();
}

std::string_view code_name(Code code) {
  switch (code) {
    case Code::Ok: return "ok";
    case Code::Fail: return "fail";
    case Code::InvalidArgument: return "invalid argument";
    case Code::NotFound: return "not found";
    case Code::Io: return "i/o error";
    case Code::InvalidModel: return "invalid model";
    case Code::Unsupported: return "unsupported";
    case Code::ShapeMismatch: return "shape mismatch";
    case Code::OutOfMemory: return "out of memory";
    case Code::PlatformMismatch: return "platform mismatch";
    case Code::Internal: return "internal error";
  }
  return "?";
}

Status::Status(const Status& other)
    : problems_(other.problems_ ? std::make_unique<std::vector<Problem>>(*other.problems_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) *this = Status(other);
  return *this;
}

Status Status::error(Code code, std::string message) {
  Status s;
  s.problems_ = std::make_unique<std::vector<Problem>>(1);
  s.problems_->front().code = code;
  s.problems_->front().message = std::move(message);
  return s;
}

Status& Status::model(std::string_view text) {
  if (is_ok()) return *this;
  for (Problem& p : *problems_)
    if (p.model.empty()) p.model = text;
  return *this;
}
Status& Status::stage(std::string_view text) {
  if (is_ok()) return *this;
  for (Problem& p : *problems_)
    if (p.stage.empty()) p.stage = text;
  return *this;
}
Status& Status::node(std::string_view name, std::string_view op) {
  if (is_ok()) return *this;
  for (Problem& p : *problems_) {
    if (!p.node.empty() || !p.op.empty()) continue;
    p.node = name;
    p.op = op;
  }
  return *this;
}
Status& Status::expected(std::string text) {
  if (problems_ && problems_->front().expected.empty()) problems_->front().expected = std::move(text);
  return *this;
}
Status& Status::found(std::string text) {
  if (problems_ && problems_->front().found.empty()) problems_->front().found = std::move(text);
  return *this;
}
Status& Status::hint(std::string text) {
  if (problems_ && problems_->front().hint.empty()) problems_->front().hint = std::move(text);
  return *this;
}

Status& Status::also(const Status& other) {
  if (other.is_ok()) return *this;
  if (is_ok()) return *this = other;
  const std::vector<Problem> more = *other.problems_;  // `other` may be this one
  problems_->insert(problems_->end(), more.begin(), more.end());
  return *this;
}

size_t Status::count() const { return problems_ ? problems_->size() : 0; }

const std::string& Status::message() const {
  static const std::string none;
  return problems_ ? problems_->front().message : none;
}

std::string Status::Problem::line() const {
  std::string text;
  if (!model.empty()) text += model + ": ";
  if (!stage.empty()) text += stage + ": ";
  if (!node.empty() || !op.empty()) text += "node '" + node + "'" + (op.empty() ? "" : " (" + op + ")") + ": ";
  text += message;
  if (!expected.empty()) text += "; expected " + expected;
  if (!found.empty()) text += (expected.empty() ? "; found " : ", found ") + found;
  if (!text.ends_with('!')) text += ".";
  if (!hint.empty()) text += " Hint: " + hint + (hint.ends_with('?') ? "" : ".");
  return text;
}

std::string Status::to_string() const {
  if (is_ok()) return "ok";
  std::string text;
  for (const Problem& p : *problems_) {
    if (!text.empty()) text += "\n";
    text += printable_line(p.line());  // names in it come from files
  }
  return text;
}

Status invalid_argument(std::string m) { return Status::error(Code::InvalidArgument, std::move(m)); }
Status invalid_model(std::string m) { return Status::error(Code::InvalidModel, std::move(m)); }
Status unsupported(std::string m) { return Status::error(Code::Unsupported, std::move(m)); }
Status shape_mismatch(std::string m) { return Status::error(Code::ShapeMismatch, std::move(m)); }
Status io_error(std::string m) { return Status::error(Code::Io, std::move(m)); }
Status internal_error(std::string m) { return Status::error(Code::Internal, std::move(m)); }

}  // namespace orknn
