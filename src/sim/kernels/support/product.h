// Matrix products of any size on the thread pool: blocks that fit the caches, packing, fixed ownership of results.
#pragma once

#include <functional>
#include <vector>

#include "base/memory.h"
#include "sim/kernel.h"
#include "sim/kernels/support/aligned_array.h"
#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/inline_function.h"
#include "sim/kernels/support/tail.h"

namespace orknn::sim::kernels {

// A matrix whose elements are somewhere in memory.
struct MatrixSource {
  const void* data = nullptr;
  Storage storage = Storage::Float;
  int64_t row_stride = 0, column_stride = 0;
};

// `batches` independent products C = finish(A * B) of one shape.
struct Product {
  int64_t batches = 1, rows = 0, columns = 0, depth = 0;
  // Exactly one of packed_a and a; exactly one of packed_b, b and conv.
  const float* packed_a = nullptr;
  MatrixSource a;
  const float* packed_b = nullptr;
  MatrixSource b;
  const ConvSource* conv = nullptr;
  void* c = nullptr;
  Storage storage = Storage::Float;
  int64_t c_row_stride = 0;
  const float* row_bias = nullptr;
  StepList steps;
  // Element offsets of one batch into A (packed or not), B (or the conv input), C and the bias, and its place for steps.
  struct Place {
    int64_t a = 0, b = 0, c = 0, bias = 0, step_batch = 0, step_row = 0;
  };
  InlineFunction<Place(int64_t batch)> place;
};

// Floats of working memory a product needs.
int64_t product_scratch(const Product& product, const ThreadPool& pool);
// `scratch` is aligned to 64 bytes.
void run_product(const Product& product, ThreadPool& pool, float* scratch);
// The same with the context's working memory; fails when memory is short.
Status run_product(const Product& product, KernelContext& context);

// Calls body(job, worker) for every job in [0, jobs), each worker being one thread at a time; workers < pool.threads().
void for_each_job(ThreadPool& pool, int64_t jobs, const std::function<void(int64_t job, int64_t worker)>& body);
// Any function object, which is only referred to: a call allocates nothing.
template <class Body>
void for_each_job(ThreadPool& pool, int64_t jobs, Body&& body) {
  const std::function<void(int64_t, int64_t)> reference(std::ref(body));
  for_each_job(pool, jobs, reference);
}

Status out_of_scratch(int64_t bytes);

}  // namespace orknn::sim::kernels
