// Which instruction set the fast kernels use on this machine.
#pragma once

#include <string_view>
#include <vector>

namespace orknn::sim::kernels {

// Every kernel has a Portable form; the others are optional and faster. Avx2 means AVX2 + FMA + F16C, Avx512 means
// AVX-512 F, BW, DQ and VL, Avx512Vnni adds VNNI, which only integer kernels use. Neon is what every 64-bit ARM has; NeonDot adds
// dot products of signed bytes, NeonI8mm those of unsigned by signed ones, which only integer kernels use, too.
enum class Isa { Portable, Avx2, Avx512, Avx512Vnni, Neon, NeonDot, NeonI8mm };

std::string_view isa_name(Isa isa);
// True when this build contains the form and this machine can run it.
bool isa_available(Isa isa);
// All forms that can run here, slowest first.
std::vector<Isa> available_isas();
// The form in use: the best available one, or the one ORKNN_ISA=portable|avx2|avx512|avx512vnni|neon|dotprod|i8mm names if it is
// available.
Isa current_isa();

// While one that asks for it lives, kernels that this thread runs compute the same floats in every form: the portable one then
// rounds products and sums together, as the others do, which is slow. Integers are the same in any case.
class ReproducibleFloats {
 public:
  explicit ReproducibleFloats(bool wanted);
  ~ReproducibleFloats();
  ReproducibleFloats(const ReproducibleFloats&) = delete;
  ReproducibleFloats& operator=(const ReproducibleFloats&) = delete;

 private:
  bool before_;
};
bool reproducible_floats();

// Switches the form for the whole process. Only for tests and benchmarks, while no kernel runs; must be available.
void set_current_isa(Isa isa);

}  // namespace orknn::sim::kernels
