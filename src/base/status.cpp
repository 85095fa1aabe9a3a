#include "base/status.h"

#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"

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

Status Status::error(Code code, std::string message) {
  Status s;
  s.fields_ = std::make_shared<Fields>();
  s.fields_->code = code;
  s.fields_->message = std::move(message);
  return s;
}

Status& Status::model(std::string_view text) {
  for (Fields* f = fields_.get(); f; f = f->next.get())
    if (f->model.empty()) f->model = text;
  return *this;
}
Status& Status::stage(std::string_view text) {
  for (Fields* f = fields_.get(); f; f = f->next.get())
    if (f->stage.empty()) f->stage = text;
  return *this;
}
Status& Status::node(std::string_view name, std::string_view op) {
  for (Fields* f = fields_.get(); f; f = f->next.get()) {
    if (!f->node.empty() || !f->op.empty()) continue;
    f->node = name;
    f->op = op;
  }
  return *this;
}
Status& Status::expected(std::string text) {
  if (fields_ && fields_->expected.empty()) fields_->expected = std::move(text);
  return *this;
}
Status& Status::found(std::string text) {
  if (fields_ && fields_->found.empty()) fields_->found = std::move(text);
  return *this;
}
Status& Status::hint(std::string text) {
  if (fields_ && fields_->hint.empty()) fields_->hint = std::move(text);
  return *this;
}

Status& Status::also(const Status& other) {
  if (other.is_ok()) return *this;
  // Copies, because both may go on to be edited, and `other` may be a part of this one.
  std::shared_ptr<Fields> copy, *end = &copy;
  for (const Fields* f = other.fields_.get(); f; f = f->next.get()) {
    *end = std::make_shared<Fields>(*f);
    (*end)->next = nullptr;
    end = &(*end)->next;
  }
  std::shared_ptr<Fields>* last = &fields_;
  while (*last) last = &(*last)->next;
  *last = std::move(copy);
  return *this;
}

size_t Status::count() const {
  size_t n = 0;
  for (const Fields* f = fields_.get(); f; f = f->next.get()) ++n;
  return n;
}

const std::string& Status::message() const {
  static const std::string none;
  return fields_ ? fields_->message : none;
}

std::string Status::line(const Fields& f) {
  std::string text;
  if (!f.model.empty()) text += f.model + ": ";
  if (!f.stage.empty()) text += f.stage + ": ";
  if (!f.node.empty() || !f.op.empty()) text += "node '" + f.node + "'" + (f.op.empty() ? "" : " (" + f.op + ")") + ": ";
  text += f.message;
  if (!f.expected.empty()) text += "; expected " + f.expected;
  if (!f.found.empty()) text += (f.expected.empty() ? "; found " : ", found ") + f.found;
  if (!text.ends_with('!')) text += ".";
  if (!f.hint.empty()) text += " Hint: " + f.hint + (f.hint.ends_with('?') ? "" : ".");
  return text;
}

std::string Status::to_string() const {
  if (!fields_) return "ok";
  std::string text;
  for (const Fields* f = fields_.get(); f; f = f->next.get()) {
    if (!text.empty()) text += "\n";
    text += line(*f);
  }
  return printable(text);  // names in it come from files
}

Status invalid_argument(std::string m) { return Status::error(Code::InvalidArgument, std::move(m)); }
Status invalid_model(std::string m) { return Status::error(Code::InvalidModel, std::move(m)); }
Status unsupported(std::string m) { return Status::error(Code::Unsupported, std::move(m)); }
Status shape_mismatch(std::string m) { return Status::error(Code::ShapeMismatch, std::move(m)); }
Status io_error(std::string m) { return Status::error(Code::Io, std::move(m)); }
Status internal_error(std::string m) { return Status::error(Code::Internal, std::move(m)); }

}  // namespace orknn
