#include "solve.h"

#include <algorithm>

namespace pif::calibrate {
namespace {

constexpr int kSteps = 200;    // halvings: as exact as numbers are
constexpr double kMost = 1.0;  // second: no constant is as much

}  // namespace

void solve(tool::Calibration& calibration, Constant constant, double seconds, const Formula& formula) {
  double low = 0, high = kMost;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = calibration.constants.*constant = (low + high) / 2;
    (formula(calibration) < seconds ? low : high) = middle;
  }
  calibration.constants.*constant = low;
}

void solve(tool::Calibration& calibration, Constant of_record, Constant of_byte, const LengthRun& shorter,
           const LengthRun& longer) {
  calibration.constants.*of_byte = 0;
  const auto of = [&](const LengthRun& run) {
    solve(calibration, of_record, run.seconds, run.formula);
    return calibration.constants.*of_record;
  };
  const double few = of(shorter), many = of(longer);
  const double each = std::max(0.0, (many - few) / (longer.length - shorter.length));
  calibration.constants.*of_byte = std::min(each, few / shorter.length);
  // Not less than nothing by a rounding.
  calibration.constants.*of_record = std::max(0.0, few - shorter.length * calibration.constants.*of_byte);
}

}  // namespace pif::calibrate
