// Copy-class work (Dibble 1990, section 5.2): output record x = F(input record x). Every worker handles its own
// component alone; nothing is said between workers. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pif/base/result.h"
#include "pif/tool/tool_main.h"
#include "pif/tool/worker.h"

namespace pif::tool {

// Whether both files have the same LFSs in the same order, and the same bevies.
bool have_same_layout(const Component& a, const Component& b);

// F on a batch of records, in place: for_each gives each of them. With variable records it may change lengths and data;
// the number of records stays. Its error ends the job.
using BatchFunction = std::function<Status(RowBatch&)>;

// Whether F may be called for several batches at once, by several threads: then all of the worker's threads
// (Worker::threads()) call it, one of them in turn with reading and writing. Where it fails for a batch, it may have
// been called for some behind it.
enum class Calls : std::uint8_t { kOneAtATime, kAtOnce };

// Every batch of the worker's component of `input`, through F, to the same rows of `output`, which has the same layout
// (else kInvalid). Called by every worker on an LFS of the files. At most two batches for each thread are in memory.
[[nodiscard]] Status transform(Worker& worker, Input& input, Output& output, const BatchFunction& f,
                               Calls calls = Calls::kOneAtATime);

// F is the identity, and the layouts are the same: the component is cloned where the local file system can, else copied
// as fast as that goes.
[[nodiscard]] Status copy_component(Worker& worker, Input& input, Output& output);

// A whole tool: NAME SRC DST. DST has the format, layout, attributes and mode of SRC. name, summary: as in Tool. Where
// F may be called at once, the tool has --threads.
Tool copy_class_tool(const std::string& name, const std::string& summary, BatchFunction f,
                     Calls calls = Calls::kOneAtATime);

}  // namespace pif::tool
