// A number at the PIF Server that several clients count with, such as the shared file pointer of a parallel program. It
// is part of a group of a parallel-open (docs/PROTOCOL.md "Parallel-open"), in the server's memory alone.
//
// Errors of all calls: kNotFound (it was closed, its opener's session has ended, or the server was started again);
// kTimeout and kUnavailable (the server). Thread-safety: that of the Client or File.
#pragma once

#include <cstdint>

#include "pif/client/client.h"

namespace pif::client {

// A counter of value 0 for whoever works at this file, which is open, or being created and shared (kPermission). Its
// number, which any client of the same user may count with. It ends with the session of `file`.
[[nodiscard]] Result<std::uint64_t> open_counter(File& file);
// Adds, and returns the value before. kInvalid: the sum would be below 0 or above the highest number; nothing is added.
// kPermission: another user's.
[[nodiscard]] Result<std::int64_t> add_to_counter(Client& client, std::uint64_t counter, std::int64_t add);
// By its opener (kPermission); again, too.
[[nodiscard]] Status close_counter(Client& client, std::uint64_t counter);

}  // namespace pif::client
