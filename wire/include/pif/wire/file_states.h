// The fate of a file, as the PIF Server sends it to LFSs (FileStatesReply.states). The numbers never change: other
// releases have them, too.
#pragma once

#include <cstdint>

namespace pif::wire {

enum FileStateAnswer : std::uint32_t {
  kFilePending = 1,
  kFileCommitted = 2,  // or removed, and perhaps open
  kFileRemoved = 3,
  kFileUnknown = 4,  // or given up before it was committed
  kFileGivenUp = 5,  // the same, of a file that was begun in the server's present run: no other history has it
};

}  // namespace pif::wire
