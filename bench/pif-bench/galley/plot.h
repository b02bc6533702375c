// Ratios over sizes of records as a picture.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pif::bench {

struct Line {
  std::string name;
  std::map<std::uint64_t, double> points;  // bytes of a record -> ratio
  bool is_dashed = false;
};

// SVG. Both axes double from mark to mark; ratios below 1 are drawn at 1.
std::string plot_svg(const std::string& title, const std::vector<Line>& lines);

}  // namespace pif::bench
