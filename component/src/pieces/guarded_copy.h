// Copying into a mapped file. A store into a mapping fails with the signal SIGBUS where the file has been cut off
// meanwhile, or its disk cannot give the page. Here that is a result.
//
// The first call installs a handler of SIGBUS for the process. It takes the faults of copy_guarded() only; all others
// go to the action that was there before, the default one included. If a program installs a handler of its own later,
// can_guard() is false from then on. A child after fork() has our handler too; exec() takes it away. The code must not
// be unloaded (dlclose) afterwards.
//
// All calls may come from any thread, at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pif/component/extents.h"

namespace pif::component {

// Whether a fault would come to us. Ask in front of each mapping.
[[nodiscard]] bool can_guard();

// Copies each piece to its place in `mapping`, which has the bytes of the file from `begin` on: they all lie inside.
// False: a store failed; nothing is known of the bytes under the pieces. A fault in their own memory is not ours.
[[nodiscard]] bool copy_guarded(std::span<const ConstExtent> pieces, std::uint64_t begin, std::span<std::byte> mapping);

}  // namespace pif::component
