// The profile as one page a person can read: table of chips, then per chip the figures, advice, a timeline, a roofline, a memory
// map and the layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "toolkit/html.h"
#include "toolkit/profile.h"
#include "toolkit/report.h"

namespace orknn::toolkit {
namespace {

struct Bound {
  std::string_view name, colour, meaning;
};
constexpr Bound kBounds[] = {{"compute", "#2f6fb2", "the MAC array"},
                             {"bandwidth", "#2e8b57", "memory traffic"},
                             {"table", "#c98a1b", "activations looked up in tables"},
                             {"vector", "#7d5ba6", "pooling, norms, softmax"},
                             {"layout", "#4f9da6", "rearranging data"},
                             {"cpu", "#c0392b", "operators on the CPU"},
                             {"overhead", "#8a8a8a", "starting the layer"}};

std::string_view colour(std::string_view bound) {
  for (const Bound& b : kBounds)
    if (b.name == bound) return b.colour;
  return kBounds[std::size(kBounds) - 1].colour;
}

// Charts share a width and a margin for the labels at their left.
constexpr double kLeft = 70, kRight = 10, kPlot = kChartWidth - kLeft - kRight;

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, std::string_view style = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>", x, y, anchor,
                     style.empty() ? "" : fmt::format(" class=\"{}\"", style), html_escaped(text));
}
std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>", x1, y1, x2, y2, style);
}
std::string rectangle(double x, double y, double width, double height, std::string_view fill, const std::string& hint) {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"><title>{}</title></rect>", x,
                     y, width, height, fill, hint);
}
std::string chart(double height, std::string_view label, const std::string& content) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>", kChartWidth, height, label, content);
}

// A step of 1, 2 or 5 times a power of ten that cuts `range` into about `parts`.
double round_step(double range, int parts) {
  if (!(range > 0)) return 1;
  const double raw = range / parts, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

std::string hint(const LayerProfile& l) {
  return html_escaped(fmt::format("{}: {} {}\n{}{}\n{:.1f} us on the {}, bound by {}\n{} MACs, reads {}, writes {}, {} task(s)",
                                  l.index + 1, l.type, l.name, l.data_type, l.output_shape, l.us, l.device, l.bound, l.macs,
                                  bytes_text(l.read_bytes), bytes_text(l.write_bytes), l.tasks));
}

// What fits into a bar of this width.
std::string shortened(std::string_view text, double width) {
  const size_t room = width > 14 ? static_cast<size_t>((width - 6) / 6.2) : 0;
  if (room < 3) return {};
  return text.size() <= room ? std::string(text) : std::string(text.substr(0, room - 1)) + ".";
}

std::string timeline(const Profile& p) {
  constexpr double kLane = 34, kGap = 6;
  const double lanes = p.cpu_layers > 0 ? 2 : 1, bottom = lanes * (kLane + kGap);
  std::string svg = text_at(kLeft - 8, kLane / 2 + 4, "end", "NPU");
  if (lanes > 1) svg += text_at(kLeft - 8, kLane * 1.5 + kGap + 4, "end", "CPU");
  const double step = round_step(p.layers_us, 10);
  for (double at = 0; at <= p.layers_us * 1.0001; at += step) {
    const double x = kLeft + at / p.layers_us * kPlot;
    svg += line(x, 0, x, bottom, "grid") + text_at(x, bottom + 14, "middle", fmt::format("{:g} ms", at / 1000));
  }
  double at = 0;
  for (const LayerProfile& l : p.layers) {
    const double x = kLeft + at / p.layers_us * kPlot, width = l.us / p.layers_us * kPlot, y = l.is_on_npu() ? 0 : kLane + kGap;
    svg += rectangle(x, y, std::max(width, 0.3), kLane, colour(l.bound), hint(l));
    if (const std::string label = shortened(l.type, width); !label.empty())
      svg += text_at(x + 4, y + kLane / 2 + 4, "start", label, "bar");
    at += l.us;
  }
  return chart(bottom + 20, "timeline", svg) +
         "<p class=\"note\">Each bar is a layer, coloured by what it waits for; point at it for its name.</p>";
}

std::string roofline(const Profile& p) {
  constexpr double kHeight = 340, kTop = 16, kBottom = 44;
  double least = 1e300, most = 0, peak = 0, lowest = 1e300;
  const double bandwidth = p.memory_gbs;
  for (const LayerProfile& l : p.layers) {
    const double bytes = static_cast<double>(l.ddr_bytes()), macs = static_cast<double>(l.macs);
    if (!l.is_on_npu() || !l.macs || bytes <= 0 || l.us <= 0) continue;
    least = std::min(least, macs / bytes);
    most = std::max(most, macs / bytes);
    lowest = std::min(lowest, macs / l.us / 1e3);
    peak = std::max(peak, macs / l.us / 1e3 / std::max(l.mac_usage.value_or(1), 1e-9));
  }
  if (most <= 0) return "<p>No layer on the NPU multiplies.</p>";
  least = std::pow(10, std::floor(std::log10(least / 1.5)));
  most = std::pow(10, std::ceil(std::log10(most * 1.5)));
  const double bottom = std::pow(10, std::floor(std::log10(lowest))), top = 2 * peak;
  const auto x = [&](double v) { return kLeft + kPlot * std::log(v / least) / std::log(most / least); };
  const auto y = [&](double v) {
    return kTop + (kHeight - kTop - kBottom) * (1 - std::log(std::max(v, bottom) / bottom) / std::log(top / bottom));
  };
  std::string svg;
  for (double v = least; v <= most * 1.001; v *= 10)
    svg += line(x(v), kTop, x(v), kHeight - kBottom, "grid") +
           text_at(x(v), kHeight - kBottom + 15, v * 10 > most * 1.001 ? "end" : "middle", fmt::format("{:g}", v));
  for (double v = bottom; v <= top; v *= 10)
    svg += line(kLeft, y(v), kChartWidth - kRight, y(v), "grid") + text_at(kLeft - 6, y(v) + 4, "end", fmt::format("{:g}", v));
  // The two roofs: what the memory delivers, and what the array can do.
  const double ridge = bandwidth > 0 ? std::clamp(peak / bandwidth, least, most) : least,
               start = bandwidth > 0 ? std::clamp(bottom / bandwidth, least, ridge) : least;
  if (bandwidth > 0) {
    svg += line(x(start), y(start * bandwidth), x(ridge), y(ridge * bandwidth), "roof");
    svg += text_at(x(std::sqrt(start * ridge)) - 8, y(std::sqrt(start * ridge) * bandwidth) - 8, "end",
                   fmt::format("memory, {:.1f} GB/s", bandwidth));
  }
  svg += line(x(ridge), y(peak), kChartWidth - kRight, y(peak), "roof") +
         text_at(kChartWidth - kRight - 2, y(peak) - 5, "end", fmt::format("MAC array, {:.0f} GMAC/s", peak));
  for (const LayerProfile& l : p.layers) {
    const double bytes = static_cast<double>(l.ddr_bytes()), macs = static_cast<double>(l.macs);
    if (!l.is_on_npu() || !l.macs || bytes <= 0 || l.us <= 0) continue;
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.55\" "
        "stroke=\"{}\"><title>{}</title></circle>",
        x(macs / bytes), y(macs / l.us / 1e3), 3 + 22 * std::sqrt(l.us / p.layers_us), colour(l.bound), colour(l.bound), hint(l));
  }
  svg += text_at(kLeft + kPlot / 2, kHeight - 8, "middle", "multiply-accumulates per byte of DDR traffic") +
         text_at(kLeft, kTop - 4, "start", "GMAC/s reached");
  return chart(kHeight, "roofline", svg) +
         "<p class=\"note\">Each circle is a layer that multiplies, its area the share of the time. The memory roof is the best "
         "rate that published speeds of the chip show. Far below the roofs: something else limits it (tables, start-up, unfilled "
         "channels).</p>";
}

std::string memory_map(const Profile& p) {
  uint64_t arena = 0;
  for (const Profile::Block& b : p.memory) arena = std::max(arena, b.offset + b.bytes);
  if (arena == 0) return "<p>No intermediate results.</p>";
  constexpr double kHeight = 280, kBottom = 34, kPlotHeight = kHeight - kBottom;
  const double layers = static_cast<double>(std::max<size_t>(p.layers.size(), 1)), bytes = static_cast<double>(arena);
  const bool large = arena >= 1024 * 1024;
  const double unit = large ? 1024.0 * 1024 : 1024.0, step = round_step(bytes / unit, 5) * unit;
  std::string svg;
  for (double at = 0; at <= bytes * 1.0001; at += step)
    svg += line(kLeft, at / bytes * kPlotHeight, kChartWidth - kRight, at / bytes * kPlotHeight, "grid") +
           text_at(kLeft - 6, std::max(at / bytes * kPlotHeight + 4, 10.0), "end",
                   fmt::format("{:g} {}", at / unit, large ? "MiB" : "KiB"));
  for (double at = 0; at < layers; at += std::max(round_step(layers, 12), 1.0))
    svg += text_at(kLeft + at / layers * kPlot, kPlotHeight + 14, "start", fmt::format("{:.0f}", at + 1));
  for (size_t i = 0; i < p.memory.size(); ++i) {
    const Profile::Block& b = p.memory[i];
    const double x = kLeft + static_cast<double>(b.first) / layers * kPlot,
                 width = static_cast<double>(b.last - b.first + 1) / layers * kPlot;
    const double y = static_cast<double>(b.offset) / bytes * kPlotHeight,
                 height = std::max(static_cast<double>(b.bytes) / bytes * kPlotHeight, 0.4);
    svg += rectangle(x, y, width, height, fmt::format("hsl({} 42% 64%)", i * 47 % 360),
                     html_escaped(fmt::format("{}\n0x{:x} to 0x{:x}, {}\nlayers {} to {}", b.tensor, b.offset, b.offset + b.bytes,
                                              bytes_text(b.bytes), b.first + 1, b.last + 1)));
    if (height >= 14)
      if (const std::string label = shortened(bytes_text(b.bytes), width); label == bytes_text(b.bytes))
        svg += text_at(x + 3, y + 12, "start", label, "block");
  }
  svg += text_at(kLeft + kPlot / 2, kHeight - 4, "middle", "layers in order of execution");
  return chart(kHeight, "memory map", svg) + fmt::format(
                                                 "<p class=\"note\">Each block is an intermediate result at its address, from "
                                                 "the layer that makes it to the last that reads it; {} in all.</p>",
                                                 bytes_text(arena));
}

constexpr std::string_view kLayerHead =
    "<tr><th class=n>#<th>type<th>output<th>on<th class=n>us<th class=n>share<th>bound by<th class=n>MAC use<th class=n>DDR "
    "cycles<th class=n>NPU cycles<th class=n>read<th class=n>tasks<th>name";

std::string layer_row(const Profile& p, const LayerProfile& l) {
  const auto cycles = [](bool known, uint64_t count) { return known ? std::to_string(count) : std::string("?"); };
  const auto time = [&](std::string text) { return p.has_times() ? text : std::string("?"); };
  return fmt::format(
      "<tr><td class=n>{}<td>{}<td>{}<td>{}<td class=n>{}<td class=n>{}<td style=\"color:{}\">{}<td class=n>{}<td class=n>{}<td "
      "class=n>{}<td class=n>{}<td class=n>{}<td class=name>{}",
      l.index + 1, html_escaped(l.type), html_escaped(l.data_type + l.output_shape), l.device, time(fmt::format("{:.1f}", l.us)),
      time(percent_text(p.layers_us > 0 ? l.us / p.layers_us : 0)), colour(l.bound), time(l.bound),
      l.mac_usage ? time(percent_text(*l.mac_usage)) : "", cycles(p.knows_ddr_cycles, l.ddr_cycles),
      cycles(p.knows_npu_cycles, l.array_cycles), bytes_text(l.read_bytes), l.tasks, html_escaped(l.name));
}

std::string costliest(const Profile& p) {
  std::vector<const LayerProfile*> order;
  for (const LayerProfile& l : p.layers) order.push_back(&l);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->us > b->us; });
  std::string html = "<h3>Costliest layers</h3><div class=wide><table>" + std::string(kLayerHead) + "</tr>";
  for (size_t i = 0; i < order.size() && i < 10; ++i) html += layer_row(p, *order[i]) + "</tr>";
  return html + "</table></div>";
}

std::string all_layers(const Profile& p) {
  std::string html = fmt::format(
      "<details><summary>All {} layers, with the reason why each runs where it does</summary><div "
      "class=wide><table>{}<th>why</tr>",
      p.layers.size(), kLayerHead);
  for (const LayerProfile& l : p.layers) html += layer_row(p, l) + "<td class=name>" + html_escaped(l.reason) + "</tr>";
  return html + "</table></div></details>";
}

std::string figures(const Profile& p) {
  const auto tile = [](std::string_view value, std::string_view what) {
    return fmt::format("<div><b>{}</b>{}</div>", value, what);
  };
  std::string html = "<div class=figures>";
  if (p.has_times()) {
    html += tile(fps_text(p.fps), "FPS") +
            tile(fmt::format("{:.2f} ms", p.latency_ms), p.batch > 1 ? fmt::format("for {} samples", p.batch) : "latency");
    html += tile(fmt::format("{:.2f} GB/s", p.gbs), "memory traffic");
    if (p.mac_usage) html += tile(percent_text(*p.mac_usage), "of the MAC array used");
  }
  html += tile(bytes_text(p.weight_bytes), "weights") + tile(bytes_text(p.internal_bytes), "intermediate results") +
          tile(fmt::format("{:.2f} G", static_cast<double>(p.macs) / 1e9), "multiply-accumulates");
  return html + tile(fmt::format("{} / {}", p.npu_layers, p.cpu_layers), "layers on NPU / CPU") + "</div>";
}

std::string chip_table(const std::vector<Profile>& profiles) {
  double best = 0;
  for (const Profile& p : profiles) best = std::max(best, p.fps);
  std::string html =
      "<div class=wide><table><tr><th>platform<th class=n>cores<th>type<th class=n>FPS<th><th class=n>ms<th class=n>weights<th "
      "class=n>activations<th class=n>GB/s<th>bound by<th>remark</tr>";
  for (size_t i = 0; i < profiles.size(); ++i) {
    const Profile& p = profiles[i];
    if (!p.problem.empty()) {
      html += fmt::format("<tr><td>{}<td><td>{}<td colspan=\"7\"><td>{}</tr>", html_escaped(p.platform), html_escaped(p.dtype),
                          html_escaped(p.problem));
      continue;
    }
    const auto time = [&](std::string text) { return p.has_times() ? text : std::string("?"); };
    html += fmt::format(
        "<tr><td><a href=\"#chip{}\">{}</a><td class=n>{}<td>{}<td class=n>{}<td class=speed><i style=\"width:{:.1f}%\"></i><td "
        "class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td style=\"color:{}\">{}<td>{}</tr>",
        i, html_escaped(p.platform), p.cores, html_escaped(p.dtype), time(fps_text(p.fps)), best > 0 ? 100 * p.fps / best : 0,
        time(fmt::format("{:.2f}", p.latency_ms)), bytes_text(p.weight_bytes), bytes_text(p.internal_bytes),
        time(fmt::format("{:.2f}", p.gbs)), colour(p.bound),
        p.bound.empty() ? "" : fmt::format("{} ({})", p.bound, percent_text(p.shares.at(p.bound))), html_escaped(remarks(p)));
  }
  return html + "</table></div>";
}

constexpr std::string_view kStyle =
    "h3{margin:1.6rem 0 "
    ".4rem}section{margin-top:1.2rem}section>details>summary{font-size:1.15rem;font-weight:600;border-bottom:1px solid "
    "#ddd;padding:.3rem 0;cursor:pointer}th{white-space:nowrap}"
    "td.name{overflow-wrap:anywhere;min-width:9rem}.wide{overflow-x:auto}td.speed{width:140px;vertical-align:middle}td.speed "
    "i{display:block;height:9px;background:#2f6fb2}"
    "svg text.bar{fill:#fff;pointer-events:none}svg "
    "text.block{fill:#222;pointer-events:none}rect{stroke:#fff;stroke-width:.5}.roof{stroke:#666;stroke-width:1.5;stroke-"
    "dasharray:5 3}";
}  // namespace

std::string html_page(const std::string& model, const std::vector<Profile>& profiles) {
  std::string html = html_head(model + " on Rockchip NPUs", kStyle);
  html += "<p class=note>Predicted without a board; docs/npu_model.md explains how, and how far off such figures are.</p>" +
          chip_table(profiles) + "<p class=\"key\">Time of a layer is bound by";
  for (const Bound& b : kBounds) html += fmt::format("<span style=\"background:{}\"></span>{}: {}", b.colour, b.name, b.meaning);
  html += "</p>";
  bool open = true;
  for (size_t i = 0; i < profiles.size(); ++i) {
    const Profile& p = profiles[i];
    if (!p.problem.empty()) continue;
    html += fmt::format("<section id=\"chip{}\"><details{}><summary>{}, {} core{}, {}</summary>", i, open ? " open" : "",
                        html_escaped(p.platform), p.cores, p.cores > 1 ? "s" : "", html_escaped(p.dtype)) +
            figures(p);
    open = false;
    if (!p.unknown.empty()) html += "<p>" + html_escaped(p.unknown) + "</p>";
    if (!p.advice.empty()) {
      html += "<ul>";
      for (const std::string& sentence : p.advice) html += "<li>" + html_escaped(sentence) + "</li>";
      html += "</ul>";
    }
    if (p.has_times() && p.layers_us > 0)
      html += "<h3>Timeline</h3>" + timeline(p) + costliest(p) + "<h3>Roofline</h3>" + roofline(p);
    html += "<h3>Memory</h3>" + memory_map(p) + all_layers(p) + "</details></section>";
  }
  // A link into a closed section opens it.
  html +=
      "<script>const open=()=>{const "
      "s=document.getElementById(location.hash.slice(1));if(s)s.querySelector('details').open=true};addEventListener('hashchange'"
      ",open);open()</script>";
  return html + "</html>\n";
}

}  // namespace orknn::toolkit
