// The common start of a sort's keys: lines of a log have the same year, names the same word in front. Chunks begin
// behind it (element.h), and so the first one decides more often.
#pragma once

#include "keys/keys.h"
#include "pif/tool/team.h"
#include "runs/inputs.h"

namespace pif::sort {

// Looks at some records of the inputs, and tells the maker what all of these begin with (KeyMaker::set_common), for
// keys that are text of variable length. Called by all workers. Errors: of the team; of reading.
[[nodiscard]] Status find_common(tool::Team& team, const Inputs& inputs, KeyMaker& maker);

}  // namespace pif::sort
