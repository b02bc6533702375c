// From what tools took to the constants that their cost formulas need: the formulas themselves, solved for one constant
// after another. Pure.
#pragma once

#include <functional>

#include "pif/tool/calibration.h"

namespace pif::calibrate {

using Constant = double tool::Constants::*;
// The seconds that a formula gives; they do not fall where the constant rises.
using Formula = std::function<double(const tool::Calibration&)>;

// The constant becomes what makes the formula give so many seconds; 0 if even that is more.
void solve(tool::Calibration& calibration, Constant constant, double seconds, const Formula& formula);

// The same of two constants, one of a record and one of its bytes, from runs with short and with long records.
struct LengthRun {
  double length = 0;  // of a record
  double seconds = 0;
  Formula formula;
};
void solve(tool::Calibration& calibration, Constant of_record, Constant of_byte, const LengthRun& shorter,
           const LengthRun& longer);

}  // namespace pif::calibrate
