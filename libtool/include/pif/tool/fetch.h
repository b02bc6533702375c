// Records of an input by their numbers, from whatever workers have them. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/component.h"
#include "pif/tool/team.h"
#include "pif/tool/worker.h"

namespace pif::tool {

// Called by all workers, a talk of the team, each with the numbers of the records that it wants: in any order, one
// perhaps several times, or none. They come in that order, as a batch of variable records whose `first` says nothing.
// They travel in large messages; all that this worker wants is in its memory at once, twice, so ask for batches.
// kInvalid: the input has no record of such a number; kInternal: an LFS of the input has no worker; else as
// Input::read() and a talk.
[[nodiscard]] Result<RowBatch> fetch(Worker& worker, Team& team, Input& input, std::span<const RecordNumber> numbers);

}  // namespace pif::tool
