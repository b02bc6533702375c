// Storage whose files do not hold up who reads them: a disk may leave a read unanswered for ever, and the kernel lets
// nobody go who waits for it. Bytes in memory are read at once. For the rest another thread waits, into memory of its
// own, and is left behind when the time is over. Any thread.
#pragma once

#include <memory>

#include "pif/base/clock.h"
#include "pif/component/storage.h"

namespace pif::client {

// Reads of files that are adopted there end within `patience` (each 4 MiB of them): kTimeout, which names the file.
// While such a read is unanswered, further ones of the same file that would wait fail at once. All else is inner's.
std::unique_ptr<component::Storage> make_patient(std::unique_ptr<component::Storage> inner, Duration patience);

}  // namespace pif::client
