// What every function of the C API does around its work: log lines in the vendor's form, the last-error text, no exception
// out.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/library_identity.h"
#include "runtime/public_api.h"
#include "runtime/trace.h"

namespace orknn::runtime {

// Sets up logging at the first call, and forgets the thread's last error.
void begin_call();
// The log's level as RKNN_LOG_LEVEL counts, 0 to 6: the two most talkative levels say the same but write different files.
int report_level();
// For programs of ours that call C functions: their log stays as it is.
void keep_own_log();
// Logs one E line, keeps the text for orknn_last_error, returns `code`. Where there is no memory for the text, there is none.
int fail(int code, const char* function, std::string_view text) noexcept;
int fail(const char* function, const Status& status) noexcept;
// For handles that are 0, unknown, destroyed or of the wrong kind.
int invalid_context(const char* function) noexcept;
const std::string& last_error();
// Makes `text`, which was logged before, the calling thread's last error.
void set_last_error(const std::string& text) noexcept;

// Runs the body of a C function.
template <class Body>
int c_call(const char* function, Body body) {
  const TracedCall traced(function);
  try {
    begin_call();
    if (!library_offers(function))
      return fail(RKNN_ERR_TARGET_PLATFORM_UNMATCH, function, "the small chips' runtime has the zero-copy API only");
    return body();
  } catch (const std::bad_alloc&) {
    return fail(RKNN_ERR_MALLOC_FAIL, function, "memory ran out");
  } catch (...) {
    return fail(RKNN_ERR_FAIL, function, "unexpected exception");
  }
}

}  // namespace orknn::runtime
