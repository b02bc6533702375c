#include "pif/matrix/instructions.h"

#include <algorithm>

#include "targets.h"

#include <hwy/targets.h>

namespace pif::matrix {

std::vector<InstructionSet> instruction_sets() {
  hwy::SetSupportedTargetsForTest(0);
  auto all = hwy::SupportedAndGeneratedTargets();
  std::reverse(all.begin(), all.end());
  return all;
}

const char* name_of(InstructionSet set) { return hwy::TargetName(set); }

void use_only(InstructionSet set) { hwy::SetSupportedTargetsForTest(set); }

}  // namespace pif::matrix
