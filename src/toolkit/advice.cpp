// What a person who knows the chips would say about a profile.
#include <fmt/format.h>

#include <algorithm>

#include "compile/cpu_ops.h"
#include "compile/npu_ops.h"
#include "ops/facts.h"
#include "toolkit/profile.h"

namespace orknn::toolkit {
namespace {
using platform::Platform;

constexpr size_t kMostSentences = 12;

class Adviser {
 public:
  Adviser(const Profile& profile, const compile::Estimate& estimate, const Platform& chip, const compile::Conditions& conditions)
      : p_(profile), estimate_(estimate), chip_(chip), conditions_(conditions), total_(profile.layers_us) {}

  std::vector<std::string> run() {
    cpu_layers();
    if (total_ <= 0) {
      std::vector<std::string> sentences;
      for (auto& [share, text] : found_) sentences.push_back(std::move(text));
      return sentences;
    }
    activations();
    unsplit_layers();
    idle_array();
    data_movement();
    dilation();
    weights();
    small_layers();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> sentences{summary()};
    for (auto& [share, text] : found_)
      if (sentences.size() <= kMostSentences) sentences.push_back(std::move(text));
    return sentences;
  }

 private:
  void say(double share, std::string text) { found_.emplace_back(share, std::move(text)); }
  const ir::Node& node(const LayerProfile& l) const {
    return estimate_.program.graph.node(estimate_.program.tasks[l.index].node);
  }
  double fps(double layers_us) const { return p_.fps * total_ / layers_us; }

  compile::NodeFacts facts(const LayerProfile& l) const { return {estimate_.program.graph, node(l), chip_}; }

  static const LayerProfile& costliest(const std::vector<const LayerProfile*>& layers) {
    return **std::max_element(layers.begin(), layers.end(), [](const auto* a, const auto* b) { return a->us < b->us; });
  }
  // "'conv1'", "'conv1' and 3 more".
  static std::string names(const std::vector<const LayerProfile*>& layers) {
    return "'" + costliest(layers).name + "'" + (layers.size() > 1 ? fmt::format(" and {} more", layers.size() - 1) : "");
  }

  std::string summary() const {
    std::vector<std::pair<std::string, double>> parts(p_.shares.begin(), p_.shares.end());
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    static const std::map<std::string, std::string> kWords{{"compute", "the MAC array"},
                                                           {"bandwidth", "memory traffic"},
                                                           {"table", "activations looked up in tables"},
                                                           {"vector", "pooling, norms and softmax"},
                                                           {"layout", "rearranging data"},
                                                           {"cpu", "the CPU"},
                                                           {"overhead", "starting layers"}};
    std::string text;
    for (const auto& [bound, share] : parts)
      if (share >= 0.005)
        text += fmt::format("{}{} {}", text.empty() ? "The time goes to " : ", ", kWords.at(bound), percent_text(share));
    return text + (p_.mac_usage
                       ? fmt::format("; the MAC array does useful work in {} of its cycles.", percent_text(*p_.mac_usage))
                       : ".");
  }

  // Layers of one operator are reported together, with the reason of the costliest.
  void cpu_layers() {
    std::map<std::string, std::vector<const LayerProfile*>> kinds;
    for (const LayerProfile& l : p_.layers)
      if (!l.is_on_npu()) kinds[l.op].push_back(&l);
    for (const auto& [op, layers] : kinds) {
      const bool timed = total_ > 0;
      const double share = timed ? sum(layers, [](const LayerProfile& l) { return l.us; }) / total_ : 0;
      if (ops::facts_of(op).npu.form == ir::NpuForm::Attention && timed) {
        const double cpu = sum(layers, [](const LayerProfile& l) { return l.cpu_us; }) / total_;
        say(share, fmt::format("{} of the time goes to attention in {}, {} of that to the softmax on the CPU: the NPU of {} has "
                               "no attention operator and computes only the two products.",
                               percent_text(share), names(layers), percent_text(cpu / std::max(share, 1e-12)), chip_.name));
        continue;
      }
      const std::string why = compile::npu_objection(facts(costliest(layers)));
      const bool listed = std::all_of(layers.begin(), layers.end(),
                                      [&](const LayerProfile* l) { return compile::cpu_objection(facts(*l)).empty(); });
      if (timed && share < 0.02 && listed) continue;
      std::string text = timed ? fmt::format("{} of the time goes to the CPU for {} ({})", percent_text(share), names(layers), op)
                               : fmt::format("{} ({}) {} to the CPU", names(layers), op, layers.size() == 1 ? "falls" : "fall");
      text += ": " + (why.empty() ? std::string("op_target says so") : why) + ".";
      if (!listed)
        text += " The vendor's tools have no CPU operator for it either and would rewrite or refuse it.";
      else if (share >= 0.1 && end_the_network(layers))
        text += " It is the end of the network: cutting it off and computing it outside may cost less.";
      say(share, std::move(text));
    }
  }

  template <class F>
  static double sum(const std::vector<const LayerProfile*>& layers, F&& value) {
    double total = 0;
    for (const LayerProfile* l : layers) total += value(*l);
    return total;
  }

  bool end_the_network(const std::vector<const LayerProfile*>& layers) const {
    return std::all_of(layers.begin(), layers.end(), [&](const LayerProfile* l) {
      const ir::TensorId t = node(*l).output(0);
      return t && estimate_.program.graph.is_output(t);
    });
  }

  // What the same layers would take with activations that need no table.
  void activations() {
    std::map<std::string, double> gains;  // microseconds
    std::map<std::string, std::vector<const LayerProfile*>> users;
    for (const LayerProfile& l : p_.layers) {
      const std::string name = slow_activation(l);
      if (name.empty()) continue;
      format::Task task = estimate_.program.tasks[l.index];
      compile::TaskCost cost = estimate_.costs[l.index];
      for (compile::Step& s : cost.steps) s.table_elements = 0;
      // After a convolution ReLU costs nothing, and cores can share the layer: one that is only the activation, or the parts of
      // one, disappears.
      if (name == l.op)
        cost.steps.clear();
      else if (is_in_parts(name))
        cost.steps.resize(std::min<size_t>(cost.steps.size(), 1));
      if (ops::facts_of(l.op).weights == ir::Weights::OutIn && !single_core()) task.core_mask = (1u << chip_.cores) - 1;
      gains[name] += l.us - compile::microseconds(task, cost, chip_, conditions_, cores());
      users[name].push_back(&l);
    }
    for (const auto& [function, us] : gains) {
      const double gain = us / total_;
      // Where a function is all there is, nothing is left whose speed could be told.
      if (gain < 0.03 || gain > 0.99) continue;
      const std::string name = function == "Swish" ? "SiLU" : function, faster = fps_text(fps(total_ - us));
      const std::string how =
          is_in_parts(function) ? "it is computed as three element-wise layers" : "the NPU looks it up in a table";
      if (end_the_network(users[function]))
        say(gain, fmt::format("{} at the outputs costs {}: {}. Left to the program that reads the outputs, the network would "
                              "reach {} FPS instead of {}.",
                              name, percent_text(gain), how, faster, fps_text(p_.fps)));
      else
        say(gain, fmt::format("{} costs {} here: {}. With ReLU the network would reach {} FPS instead of {}.", name,
                              percent_text(gain), how, faster, fps_text(p_.fps)));
    }
  }
  int cores() const { return p_.batch > 1 ? 1 : p_.cores; }
  bool single_core() const {
    return std::all_of(estimate_.program.tasks.begin(), estimate_.program.tasks.end(),
                       [](const format::Task& t) { return t.core_mask == 1; });
  }
  // Computed as several element-wise layers instead of by a table.
  bool is_in_parts(std::string_view function) const { return chip_.functions_in_parts && ops::facts_of(function).npu.in_parts; }
  // The activation of a layer that costs more than ReLU; empty when there is none.
  std::string slow_activation(const LayerProfile& l) const {
    if (!l.is_on_npu()) return {};
    const bool looked_up =
        std::any_of(l.steps.begin(), l.steps.end(), [](const compile::Step& s) { return s.table_elements > 0; });
    for (std::string_view f : facts(l).functions())
      if (ops::facts_of(f).npu.stage == ir::OutputStage::Table && (looked_up || is_in_parts(f))) return std::string(f);
    return looked_up && l.macs == 0 ? l.op : std::string();
  }

  // Layers that several cores cannot share.
  void unsplit_layers() {
    if (p_.cores < 2 || p_.batch > 1) return;
    std::map<std::string, std::vector<const LayerProfile*>> kinds;
    for (const LayerProfile& l : p_.layers)
      if (l.cores == 1 && l.is_on_npu()) kinds[l.type].push_back(&l);
    std::vector<std::pair<double, std::string>> order;
    double all = 0;
    for (const auto& [type, layers] : kinds) {
      const double share = sum(layers, [](const LayerProfile& l) { return l.us; }) / total_;
      all += share;
      order.emplace_back(share, type);
    }
    if (all < 0.1) return;
    std::sort(order.rbegin(), order.rend());
    std::string list;
    for (size_t i = 0; i < order.size() && i < 3; ++i)
      list += fmt::format("{}{} {}", i ? ", " : "", order[i].second, percent_text(order[i].first));
    say(all * 0.5, fmt::format("{} of the time only one of the {} cores works, because these layers are not divided: {}. "
                               "Independent inputs, one per core, use all of them.",
                               percent_text(all), p_.cores, list));
  }

  // Dense convolutions whose channels do not fill the array.
  void idle_array() {
    struct Waste {
      std::vector<const LayerProfile*> layers;
      double lost = 0;
      std::string sentence;
    };
    std::map<std::string, Waste> found;
    for (const LayerProfile& l : p_.layers) {
      if (ops::facts_of(l.op).weights != ir::Weights::OutIn || !l.is_on_npu() || chip_.packs_channels || l.bound != "compute")
        continue;
      const auto w = compile::window_of(facts(l));
      if (!w || w->group != 1 || w->in_channels <= 4) continue;  // a stem reads the picture in its own way
      const DType type = facts(l).input_type(0);
      const bool half = dtype_bytes(type) != 1;
      const auto& align = half ? chip_.align_half : chip_.align_int8;
      const int64_t taps = w->kernel[0] * w->kernel[1], in_step = std::max(align.conv_in, 1),
                    out_step = std::max(align.conv_out, 1);
      const auto up = [](int64_t v, int64_t m) { return (v + m - 1) / m * m; };
      // A kernel of few taps takes a least number of passes, so that more inputs are free.
      const int64_t least = (half ? chip_.min_passes_half : chip_.min_passes_int8) / taps * in_step;
      int64_t in = std::max(up(w->in_channels, in_step), least), out = up(w->out_channels, out_step);
      const auto share_used = [&] {
        return static_cast<double>(w->in_channels) / static_cast<double>(in) * static_cast<double>(w->out_channels) /
               static_cast<double>(out);
      };
      const double use = share_used();
      if (use >= 0.75) continue;
      // More channels are more traffic: only what the layer would not feel is worth a sentence.
      if (widened_us(l, *w, in, out) > l.us * 1.005) {
        in = w->in_channels;
        if (widened_us(l, *w, in, out) > l.us * 1.005) continue;
      }
      if (share_used() >= 0.75) continue;
      Waste& waste =
          found[fmt::format("{}x{} convolution, {} -> {} channels", w->kernel[0], w->kernel[1], w->in_channels, w->out_channels)];
      waste.layers.push_back(&l);
      waste.lost += l.us / total_ * (1 - share_used());
      waste.sentence = fmt::format("{} of the MAC array is idle; {} -> {} would take no longer.", percent_text(1 - use), in, out);
    }
    for (const auto& [shape, waste] : found)
      if (waste.lost >= 0.01) say(waste.lost, fmt::format("{} ({}): {}", names(waste.layers), shape, waste.sentence));
  }

  // The time of a dense convolution that had more channels within the same array cycles.
  double widened_us(const LayerProfile& l, const compile::Window& w, int64_t in, int64_t out) const {
    const int64_t lanes = chip_.c2(facts(l).input_type(0));
    const auto lane_ratio = [&](int64_t to, int64_t from) {
      return static_cast<double>((to + lanes - 1) / lanes) / static_cast<double>((from + lanes - 1) / lanes);
    };
    compile::TaskCost cost = estimate_.costs[l.index];
    const double more_in = lane_ratio(in, w.in_channels), more_out = lane_ratio(out, w.out_channels);
    compile::Step& s = cost.steps.front();
    s.bytes += static_cast<double>(cost.read_bytes - cost.weight_bytes) * (more_in - 1) +
               static_cast<double>(cost.write_bytes) * (more_out - 1);
    s.weight_bytes *= static_cast<double>(in) / static_cast<double>(w.in_channels) * static_cast<double>(out) /
                      static_cast<double>(w.out_channels);
    for (size_t i = 1; i < cost.steps.size(); ++i) cost.steps[i].bytes *= more_out;
    return compile::microseconds(estimate_.program.tasks[l.index], cost, chip_, conditions_, cores());
  }

  void data_movement() {
    std::map<std::string, std::vector<const LayerProfile*>> kinds;
    for (const LayerProfile& l : p_.layers)
      if (l.is_on_npu() &&
          (ops::facts_of(l.op).engine == ir::Engine::Move || ops::facts_of(l.op).conversion == ir::Conversion::ToType))
        kinds[l.op].push_back(&l);
    for (const auto& [op, layers] : kinds) {
      const double share = sum(layers, [](const LayerProfile& l) { return l.us; }) / total_;
      if (share < 0.05) continue;
      std::string text = fmt::format("{} of the time goes to moving data in {} ({})", percent_text(share), names(layers), op);
      if (op == "Transpose")
        text +=
            ": export the model so that layouts change less often, or leave the last ones to the program that uses the results";
      else if (ops::facts_of(op).conversion == ir::Conversion::ToType)
        text += ": they convert between int8 and float16 around operators that the chip has in float16 only";
      else if (ops::facts_of(op).parts != ir::Parts::None)
        text += ": every byte is read and written again";
      say(share, text + ".");
    }
  }

  void dilation() {
    double us = 0;
    std::vector<const LayerProfile*> layers;
    for (const LayerProfile& l : p_.layers)
      for (const compile::Step& s : l.steps)
        if (s.work == compile::Step::Work::SpaceToBatch) {
          us += compile::time_of(s, chip_, conditions_).total;
          layers.push_back(&l);
        }
    if (us / total_ >= 0.03)
      say(us / total_,
          fmt::format("{} of the time goes to moving pixels apart and together again around {} (dilated depthwise convolution).",
                      percent_text(us / total_), names(layers)));
  }

  void weights() {
    double us = 0, most = 0;
    uint64_t bytes = 0;
    std::string where;
    for (const LayerProfile& l : p_.layers) {
      double wait = 0;
      for (const compile::Step& s : l.steps) wait += l.bound == "bandwidth" ? s.weight_bytes / (chip_.speed.weight_gbs * 1e3) : 0;
      if (wait == 0) continue;
      us += wait;
      bytes += l.weight_bytes;
      if (wait > most) {
        most = wait;
        where = l.name;
      }
    }
    if (us / total_ < 0.15) return;
    const auto offers = [&](std::string_view name) {
      return std::find(chip_.quantized_dtypes.begin(), chip_.quantized_dtypes.end(), name) != chip_.quantized_dtypes.end();
    };
    std::string remedy;
    if (p_.dtype == "float16" && chip_.conv_int8)
      remedy = fmt::format(" Weights in 8 bits ({}) would halve this{}.", offers("w8a16") ? "w8a16 or w8a8" : "w8a8",
                           offers("w4a16") ? ", w4a16 would quarter it" : "");
    say(us / total_, fmt::format("{} of the time layers wait for their weights ({:.1f} MB), most in '{}'.{}",
                                 percent_text(us / total_), static_cast<double>(bytes) / 1e6, where, remedy));
  }

  void small_layers() {
    std::vector<const LayerProfile*> layers;
    double us = 0;
    for (const LayerProfile& l : p_.layers)
      if (l.is_on_npu() && l.bound == "overhead") {
        layers.push_back(&l);
        us += l.fixed_us;
      }
    if (us / total_ >= 0.05)
      say(us / total_,
          fmt::format("{} so small that starting {} takes {} of the time ({:.1f} us each): fewer and larger layers are faster.",
                      layers.size() == 1 ? "1 layer is" : fmt::format("{} layers are", layers.size()),
                      layers.size() == 1 ? "it" : "them", percent_text(us / total_), us / static_cast<double>(layers.size())));
  }

  const Profile& p_;
  const compile::Estimate& estimate_;
  const Platform& chip_;
  const compile::Conditions& conditions_;
  const double total_;
  std::vector<std::pair<double, std::string>> found_;
};
}  // namespace

std::string off_list(const compile::Estimate& estimate, const Platform& chip) {
  // The vendor's tools rewrite what a larger chip lacks, and the lists of generation 1 are not published.
  if (chip.cpu_ops == platform::CpuOps::All) return {};
  size_t count = 0;
  std::string first;
  for (const format::Task& task : estimate.program.tasks) {
    if (task.device == format::Device::Npu) continue;
    const ir::Node& n = estimate.program.graph.node(task.node);
    const compile::NodeFacts facts(estimate.program.graph, n, chip);
    const std::string npu = compile::npu_objection(facts), cpu = compile::cpu_objection(facts);
    if (npu.empty() || cpu.empty()) continue;
    if (count++ == 0)
      first = fmt::format("'{}' ({}) is computed neither by its NPU ({}) nor by its CPU ({})", n.name, facts.op(), npu, cpu);
  }
  if (count == 0) return {};
  return fmt::format("{} cannot run the network as it is: {}{}", chip.name, first,
                     count > 1 ? fmt::format(", and {} more", count - 1) : "");
}

std::vector<std::string> advise(const Profile& profile, const compile::Estimate& estimate, const Platform& chip,
                                const compile::Conditions& conditions) {
  return Adviser(profile, estimate, chip, conditions).run();
}

}  // namespace orknn::toolkit
