// The profile as one page a person can read: table of chips, then per chip a timeline, a roofline, a memory map and the layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "toolkit/profile.h"
#include "toolkit/report.h"

namespace orknn::toolkit {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string_view colour(std::string_view bound) {
  if (bound == "compute") return "#2f6fb2";
  if (bound == "bandwidth") return "#3a9a5b";
  if (bound == "table") return "#c98a1b";
  if (bound == "cpu") return "#c0392b";
  return "#8a8a8a";
}

constexpr double kWidth = 1100;

std::string hint(const LayerProfile& l) {
  return escaped(fmt::format("{} {}\n{}{}\n{:.1f} us on the {}, bound by {}\n{} MACs, reads {}, writes {}", l.type, l.name, l.data_type, l.output_shape, l.us, l.device, l.bound, l.macs,
                             bytes_text(l.read_bytes), bytes_text(l.write_bytes)));
}

std::string timeline(const Profile& p) {
  double total = 0, at = 0;
  for (const LayerProfile& l : p.layers) total += l.us;
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} 92\" role=\"img\" aria-label=\"timeline\">", kWidth);
  for (const LayerProfile& l : p.layers) {
    const double x = total > 0 ? at / total * kWidth : 0, width = total > 0 ? l.us / total * kWidth : 0;
    svg += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"30\" fill=\"{}\"><title>{}</title></rect>", x, l.device == "NPU" ? 4 : 40, std::max(width, 0.3), colour(l.bound), hint(l));
    at += l.us;
  }
  for (int i = 0; i <= 10; ++i)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"88\" text-anchor=\"{}\">{:.2f}</text>", kWidth * i / 10, i == 0 ? "start" : i == 10 ? "end" : "middle", total * i / 10 / 1000);
  return svg + "</svg><p class=\"note\">milliseconds; upper row NPU, lower row CPU; point at a bar for the layer</p>";
}

std::string roofline(const Profile& p) {
  constexpr double kHeight = 320, kLeft = 60, kBottom = 40;
  double least = 1e9, most = 0, top = 0;
  for (const LayerProfile& l : p.layers) {
    const double bytes = static_cast<double>(l.read_bytes) + static_cast<double>(l.write_bytes);
    if (!l.macs || bytes <= 0 || l.us <= 0) continue;
    least = std::min(least, static_cast<double>(l.macs) / bytes);
    most = std::max(most, static_cast<double>(l.macs) / bytes);
    top = std::max(top, static_cast<double>(l.macs) / l.us / 1e3 / std::max(l.mac_usage, 1e-9));
  }
  if (most <= 0) return "<p>No layer multiplies.</p>";
  least /= 2;
  most *= 2;
  const double bottom = top / 1e5;
  const auto x = [&](double v) { return kLeft + (kWidth - kLeft - 10) * std::log(v / least) / std::log(most / least); };
  const auto y = [&](double v) { return 10 + (kHeight - kBottom - 10) * (1 - std::log(std::max(v, bottom) / bottom) / std::log(2 * top / bottom)); };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"roofline\">", kWidth, kHeight);
  svg += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" class=\"roof\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} GMAC/s peak</text>", kLeft, y(top), kWidth - 10, y(top),
                     kWidth - 12, y(top) - 4, top);
  for (double v = std::pow(10, std::ceil(std::log10(least))); v < most; v *= 10)
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"10\" x2=\"{0:.1f}\" y2=\"{1}\" class=\"grid\"/><text x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"middle\">{3:g}</text>", x(v), kHeight - kBottom, kHeight - kBottom + 16, v);
  for (double v = std::pow(10, std::ceil(std::log10(bottom))); v < 2 * top; v *= 10)
    svg += fmt::format("<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" class=\"grid\"/><text x=\"{3}\" y=\"{1:.1f}\" text-anchor=\"end\">{4:g}</text>", kLeft, y(v), kWidth - 10, kLeft - 6, v);
  double total = 0;
  for (const LayerProfile& l : p.layers) total += l.us;
  for (const LayerProfile& l : p.layers) {
    const double bytes = static_cast<double>(l.read_bytes) + static_cast<double>(l.write_bytes);
    if (!l.macs || bytes <= 0 || l.us <= 0) continue;
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.6\"><title>{}</title></circle>", x(static_cast<double>(l.macs) / bytes),
                       y(static_cast<double>(l.macs) / l.us / 1e3), 3 + 25 * std::sqrt(l.us / total), colour(l.bound), hint(l));
  }
  return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">MACs per byte</text></svg><p class=\"note\">height: GMAC/s reached; size: share of the time</p>", kWidth / 2, kHeight - 6);
}

std::string memory_map(const Profile& p) {
  if (p.memory.empty() || p.internal_bytes == 0) return "<p>No intermediate results.</p>";
  constexpr double kHeight = 260;
  const double layers = static_cast<double>(std::max<size_t>(p.layers.size(), 1)), bytes = static_cast<double>(p.internal_bytes);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"memory map\">", kWidth, kHeight);
  for (size_t i = 0; i < p.memory.size(); ++i) {
    const Profile::Block& b = p.memory[i];
    const double x = static_cast<double>(b.first) / layers * kWidth, width = static_cast<double>(b.last - b.first + 1) / layers * kWidth;
    svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"hsl({} 45% 60%)\" stroke=\"#fff\" stroke-width=\"0.4\"><title>{}</title></rect>", x,
                       static_cast<double>(b.offset) / bytes * kHeight, width, std::max(static_cast<double>(b.bytes) / bytes * kHeight, 0.4), i * 47 % 360,
                       escaped(fmt::format("{}\n0x{:x} to 0x{:x}, {}\nlayers {} to {}", b.tensor, b.offset, b.offset + b.bytes, bytes_text(b.bytes), b.first + 1, b.last + 1)));
  }
  return svg + fmt::format("</svg><p class=\"note\">across: layers in order; down: addresses, {} in all</p>", bytes_text(p.internal_bytes));
}

std::string layer_table(const Profile& p) {
  std::string html = "<details><summary>All layers</summary><table><tr><th>#<th>type<th>output<th>on<th>us<th>bound by<th>MAC use<th>DDR cycles<th>NPU cycles<th>read<th>name<th>why</tr>";
  for (const LayerProfile& l : p.layers)
    html += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{:.1f}<td style=\"color:{}\">{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>", l.index + 1, escaped(l.type), escaped(l.data_type + l.output_shape), l.device, l.us,
                        colour(l.bound), l.bound, l.macs ? fmt::format("{:.0f} %", 100 * l.mac_usage) : "", l.ddr_cycles, l.array_cycles, bytes_text(l.read_bytes), escaped(l.name), escaped(l.reason));
  return html + "</table></details>";
}
}  // namespace

std::string html_page(const std::string& model, const std::vector<Profile>& profiles) {
  std::string html = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{0} on Rockchip NPUs</title><style>"
      "body{{font:15px/1.5 system-ui,sans-serif;max-width:1140px;margin:2rem auto;padding:0 1rem;color:#222}}h1{{font-size:1.5rem}}h2{{margin-top:2.5rem;border-bottom:1px solid #ddd}}"
      "table{{border-collapse:collapse;width:100%;font-size:13px}}th,td{{text-align:left;padding:3px 8px;border-bottom:1px solid #eee}}svg{{width:100%;height:auto;background:#fafafa}}"
      "svg text{{font:11px system-ui,sans-serif;fill:#555}}.grid{{stroke:#e4e4e4}}.roof{{stroke:#888;stroke-dasharray:4 3}}.note{{color:#777;font-size:13px;margin:.2rem 0 1rem}}"
      ".key span{{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}}</style><h1>{0}</h1>",
      escaped(model));
  html += "<p class=\"key\">bound by";
  for (const char* bound : {"compute", "bandwidth", "table", "cpu", "overhead"}) html += fmt::format("<span style=\"background:{}\"></span>{}", colour(bound), bound);
  html += "</p><table><tr><th>platform<th>cores<th>type<th>FPS<th>ms<th>weights<th>activations<th>GB/s<th>bound by<th>remark</tr>";
  for (const Profile& p : profiles) {
    if (!p.problem.empty()) html += fmt::format("<tr><td>{}<td><td>{}<td colspan=\"6\"><td>{}</tr>", escaped(p.platform), escaped(p.dtype), escaped(p.problem));
    else
      html += fmt::format("<tr><td>{}<td>{}<td>{}<td>{:.1f}<td>{:.2f}<td>{}<td>{}<td>{:.2f}<td>{}<td>{}</tr>", escaped(p.platform), p.cores, escaped(p.dtype), p.fps, p.latency_ms, bytes_text(p.weight_bytes),
                          bytes_text(p.internal_bytes), p.gbs, p.bound, p.constants == "scaled" ? "scaled from a relative" : "");
  }
  html += "</table>";
  for (const Profile& p : profiles) {
    if (!p.problem.empty() || p.cores != 1) continue;
    html += fmt::format("<h2>{}, {}</h2>", escaped(p.platform), escaped(p.dtype));
    if (!p.advice.empty()) {
      html += "<ul>";
      for (const std::string& line : p.advice) html += "<li>" + escaped(line) + "</li>";
      html += "</ul>";
    }
    html += "<h3>Timeline</h3>" + timeline(p) + "<h3>Roofline</h3>" + roofline(p) + "<h3>Memory</h3>" + memory_map(p) + layer_table(p);
  }
  return html + "</html>\n";
}

}  // namespace orknn::toolkit
