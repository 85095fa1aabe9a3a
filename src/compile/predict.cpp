#include "compile/predict.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orknn::compile {

double bus_share(const platform::Platform& platform, const Conditions& conditions, int cores) {
  const int64_t own_ddr = platform.speed_ddr_hz();
  const double ddr =
      conditions.ddr_hz > 0 && own_ddr > 0 ? static_cast<double>(conditions.ddr_hz) / static_cast<double>(own_ddr) : 1;
  const double users = std::max(cores, 1), all = users + conditions.neighbours;
  return ddr * platform::SpeedModel::bus_gain(all) * users / all;
}

StepTime time_of(const Step& s, const platform::Platform& platform, const Conditions& conditions, int cores, double share) {
  const platform::SpeedModel& v = platform.speed;
  StepTime t;
  if (v.source == platform::SpeedModel::Source::Unknown) return t;
  const double own_clock = static_cast<double>(platform.npu_hz) / 1e6;  // cycles per microsecond
  const double clock = conditions.npu_hz > 0 ? static_cast<double>(conditions.npu_hz) / 1e6 : own_clock;
  // For constants that were measured as times of the NPU.
  const double slower = s.npu || platform.has_shader ? own_clock / clock : 1;
  const double split = share > 0 ? 1 / share : std::max(cores, 1), bus = bus_share(platform, conditions, cores);
  // Products of few taps lose in float16; larger kernels keep their share of the array. Tables take two bytes in two steps.
  const double half = s.half ? v.half : 1, lanes = s.half ? 0.5 : 1;
  const auto gbs = [&](double bytes, double rate) { return bytes / (rate * bus) / 1e3; };
  const auto ns = [&](double elements, double each) { return elements * each / 1e3; };
  t.fixed = v.layer_us * slower * s.tasks;
  t.table = s.table_elements / (v.table_per_cycle * lanes * clock) / split;
  const double conv_half = platform.packs_channels ? half : 1;  // generation 1 has no float16 array worth the name
  using Work = Step::Work;
  switch (s.work) {
    case Work::Conv: t.compute = s.cycles / (v.conv * conv_half * clock) / split; break;
    case Work::Stem: t.compute = s.cycles * v.stem / (v.conv * conv_half * clock) / split; break;
    case Work::Pointwise:
    case Work::MatMul: t.compute = s.cycles / (v.pointwise * half * clock) / split; break;
    case Work::Depthwise: t.compute = s.cycles / (v.depthwise * clock) / split; break;
    case Work::Pool: t.compute = s.elements / (v.pool_per_cycle * clock) / split; break;
    case Work::GlobalPool: t.compute = s.elements / (v.global_pool_per_cycle * clock) / split; break;
    case Work::Norm: t.compute = ns(s.elements, v.norm_ns) * slower; break;
    case Work::Attention: t.compute = ns(s.elements, v.attention_ns) * slower / split; break;
    case Work::Softmax:
      t.compute = ns(s.elements, v.softmax_ns) * slower;
      if (!s.npu) t.fixed += v.cpu_layer_us * slower;
      break;
    case Work::Transpose:
      t.compute = ns(s.elements, s.npu ? v.transpose_ns : v.cpu_transpose_ns) * slower;
      if (!s.npu) t.fixed = v.cpu_layer_us * slower;
      break;
    case Work::Reshape:
      t.compute = ns(s.elements, v.reshape_ns) * slower;
      t.fixed *= 0.5;
      break;
    case Work::SpaceToBatch:
      t.compute = ns(s.elements, v.space_to_batch_ns) * slower;
      t.fixed = 0;
      break;
    case Work::Narrow:
      t.compute = ns(s.elements, v.narrow_ns);
      t.fixed = v.cpu_layer_us;
      break;
    case Work::CpuMacs:
      t.compute = ns(s.macs, v.cpu_mac_ns) * slower;
      t.fixed = v.cpu_layer_us * slower;
      break;
    case Work::CpuElements:
      t.compute = ns(s.elements, v.cpu_ns) * slower;
      t.fixed = v.cpu_layer_us * slower;
      break;
    case Work::Move: break;
  }
  const bool moves = s.work == Work::Move || s.work == Work::Pool || s.work == Work::GlobalPool;
  const double features = gbs(s.bytes, moves ? v.move_gbs : v.feature_gbs), weights = gbs(s.weight_bytes, v.weight_gbs);
  t.traffic = features + weights;
  // Times per element hold the traffic at the chip's own clocks: another bus changes that part of them.
  const bool measured = s.work == Work::Attention || s.work == Work::Softmax || s.work == Work::Transpose ||
                        s.work == Work::Reshape || s.work == Work::SpaceToBatch;
  if (measured) {
    t.traffic = std::min(t.traffic, t.compute / bus);
    t.total = t.compute + t.traffic * (1 - bus) + t.fixed;
    return t;
  }
  const double beside = platform.table_follows ? 0 : t.table;
  t.total =
      v.beside(t.compute, s.serial ? features : t.traffic, beside) + (s.serial ? weights : 0) + (t.table - beside) + t.fixed;
  // Whatever the constants say, no step beats the array.
  t.total = std::max(t.total, s.least_cycles / clock / split);
  return t;
}

std::vector<StepTime> times_of(const format::Task& task, const TaskCost& cost, const platform::Platform& platform,
                               const Conditions& conditions, int cores) {
  const uint32_t used = task.working_cores(cores);
  // The busiest core decides: the last of those that work.
  const double share = used > 1 ? format::core_share(task.pieces, used, used - 1) : 1;
  std::vector<StepTime> times;
  for (const Step& s : cost.steps) times.push_back(time_of(s, platform, conditions, static_cast<int>(used), share));
  return times;
}

double microseconds(const format::Task& task, const TaskCost& cost, const platform::Platform& platform,
                    const Conditions& conditions, int cores) {
  double sum = 0;
  for (const StepTime& t : times_of(task, cost, platform, conditions, cores)) sum += t.total;
  return sum;
}

std::vector<TaskCost> predict(format::Program& program, const platform::Platform& platform, const ir::OpSet& ops,
                              const CostOptions& options) {
  const double bytes_per_cycle = platform.ddr_bytes_per_cycle();
  std::vector<TaskCost> costs;
  for (format::Task& task : program.tasks) {
    TaskCost cost = cost_of(program, task, platform, ops, options);
    task.macs = cost.macs;
    task.array_cycles = cost.array_cycles;
    task.read_bytes = cost.read_bytes;
    task.write_bytes = cost.write_bytes;
    task.read_again_bytes = cost.read_again_bytes;
    task.weight_bytes = cost.packed_bytes;
    task.tiles = cost.tiles;
    task.tiling = cost.tiling;
    task.pieces = cost.pieces;
    task.sparsity = cost.sparsity;
    const double bytes = static_cast<double>(cost.read_bytes) + static_cast<double>(cost.write_bytes);
    task.ddr_cycles =
        task.device == format::Device::Npu && bytes_per_cycle > 0 ? static_cast<uint64_t>(std::ceil(bytes / bytes_per_cycle)) : 0;
    const auto cycles = [&](int cores) {
      return static_cast<uint64_t>(
          std::min(microseconds(task, cost, platform, {}, cores) * static_cast<double>(platform.npu_hz) / 1e6, 1e18) + 0.5);
    };
    task.predicted_cycles = cycles(1);
    for (int cores = 2; cores <= std::popcount(task.core_mask); ++cores) task.shared_cycles.push_back(cycles(cores));
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace orknn::compile
