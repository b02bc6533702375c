#include "galley/plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace pif::bench {
namespace {

constexpr double kWidth = 760, kHeight = 480, kLeft = 60, kRight = 210, kTop = 40, kBottom = 50;
constexpr const char* kColours[] = {"#1b6ca8", "#c0392b", "#2d8a4e", "#8e44ad", "#b9770e", "#566573", "#148f77"};
constexpr double kNameHeight = 15;

// From a value to its place. Invariant: low < high.
struct Axis {
  double low, high;   // powers of two
  double begin, end;  // in the picture
  double place(double value) const {
    const double share = (std::log2(std::max(value, low)) - std::log2(low)) / (std::log2(high) - std::log2(low));
    return begin + share * (end - begin);
  }
};

std::string text(double x, double y, const std::string& words, const char* anchor, const char* colour = "#333333") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, colour,
                     words);
}

std::string mark_of(double value) {
  return value < 1024 ? fmt::format("{:.0f}", value) : fmt::format("{:.0f} Ki", value / 1024);
}

std::string grid(const Axis& x, const Axis& y) {
  std::string out;
  for (double at = x.low; at <= x.high; at *= 4) {
    out += fmt::format("<path d=\"M{:.1f} {} V{}\" stroke=\"#eeeeee\"/>\n", x.place(at), y.end, y.begin);
    out += text(x.place(at), y.begin + 18, mark_of(at), "middle");
  }
  for (double at = y.low; at <= y.high; at *= 2) {
    out += fmt::format("<path d=\"M{} {:.1f} H{}\" stroke=\"#eeeeee\"/>\n", x.begin, y.place(at), x.end);
    out += text(x.begin - 8, y.place(at) + 4, mark_of(at), "end");
  }
  return out + text((x.begin + x.end) / 2, kHeight - 10, "bytes of a record", "middle");
}

std::string drawn(const Line& line, const Axis& x, const Axis& y, const char* colour, double name_y) {
  std::string path;
  for (const auto& [bytes, ratio] : line.points)
    path += fmt::format("{:.1f},{:.1f} ", x.place(static_cast<double>(bytes)), y.place(ratio));
  const char* const dashes = line.is_dashed ? "stroke-dasharray=\"5 4\"" : "";
  const auto polyline = [&](const std::string& points) {
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" {}/>\n", points, colour,
                       dashes);
  };
  return polyline(path) + polyline(fmt::format("{0},{2} {1},{2}", x.end + 12, x.end + 40, name_y - 4)) +
         text(x.end + 46, name_y, line.name, "start", colour);
}

}  // namespace

std::string plot_svg(const std::string& title, const std::vector<Line>& lines) {
  double bytes_min = 64, bytes_max = 128, ratio_max = 2;
  for (const Line& line : lines)
    for (const auto& [bytes, ratio] : line.points) {
      bytes_max = std::max(bytes_max, static_cast<double>(bytes));
      ratio_max = std::max(ratio_max, std::exp2(std::ceil(std::log2(ratio))));
    }
  const Axis x{bytes_min, bytes_max, kLeft, kWidth - kRight}, y{1, ratio_max, kHeight - kBottom, kTop};
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
      "font-size=\"12\"><rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  out += text(kLeft, kTop - 16, title, "start") + grid(x, y);
  double name_y = kTop + kNameHeight;
  for (std::size_t i = 0; i < lines.size(); ++i, name_y += kNameHeight)
    out += drawn(lines[i], x, y, kColours[i % std::size(kColours)], name_y);
  return out + "</svg>\n";
}

}  // namespace pif::bench
