// A function object held in place: unlike std::function, it never allocates, whatever it captures.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace orknn::sim::kernels {

template <class Signature>
class InlineFunction;

// Holds objects of up to 64 bytes that are copied as bytes: lambdas that capture references, pointers and numbers.
template <class Result, class... Arguments>
class InlineFunction<Result(Arguments...)> {
 public:
  InlineFunction() = default;
  template <class Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, InlineFunction>) InlineFunction(Function function)
      : call_(&call<Function>) {
    static_assert(sizeof(Function) <= sizeof bytes_ && alignof(Function) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_copyable_v<Function> && std::is_trivially_destructible_v<Function>);
    new (bytes_) Function(function);
  }
  Result operator()(Arguments... arguments) const { return call_(bytes_, std::forward<Arguments>(arguments)...); }

 private:
  template <class Function>
  static Result call(const std::byte* bytes, Arguments... arguments) {
    return (*std::launder(reinterpret_cast<const Function*>(bytes)))(std::forward<Arguments>(arguments)...);
  }
  alignas(std::max_align_t) std::byte bytes_[64];
  Result (*call_)(const std::byte*, Arguments...) = nullptr;
};

}  // namespace orknn::sim::kernels
