// Who may be at a component beside whom: each component has one lock, first come first served, and this table of its
// modes (docs/ARCHITECTURE.md "Who may be at a component"). What is under way is asked of the lock, and noted nowhere
// else. One thread.
#pragma once

#include <array>
#include <cstdint>

#include "pif/daemon/mode_lock.h"

namespace pif::lfs {

enum class Mode : std::uint8_t {
  kRestore,     // it catches up with what others wrote without it: rows and parity
  kKeepParity,  // its parity of others' rows is written, and entered in the catalogue
  kAddParity,   // parity of rows that are not published yet is written
  kSyncParity,  // that is made durable, and entered in the catalogue
};
inline constexpr unsigned kModes = 4;

template <typename... Modes>
constexpr std::uint32_t bits_of(Modes... modes) {
  return ((1u << static_cast<unsigned>(modes)) | ... | 0u);
}

// [mode]: which may be held beside it.
inline constexpr std::array<std::uint32_t, kModes> kBeside = {
    0,                                             // kRestore
    0,                                             // kKeepParity: only one writes .par and .pap
    bits_of(Mode::kSyncParity),                    // kAddParity: the same
    bits_of(Mode::kAddParity, Mode::kSyncParity),  // kSyncParity: syncs are shared
};

class ComponentLock {
 public:
  using Held = daemon::ModeLock::Held;
  [[nodiscard]] Held acquire(daemon::Fibers& fibers, Mode mode, Time until) {
    return lock_.acquire(fibers, index(mode), until);
  }
  [[nodiscard]] Held try_acquire(Mode mode) { return lock_.try_acquire(index(mode)); }
  static void relax(Held& held, Mode mode) { held.relax(index(mode)); }
  template <typename... Modes>
  bool is_held(Modes... modes) const {
    return (lock_.is_held(index(modes)) || ...);
  }
  // Its parity is being written.
  bool keeps_parity() const { return is_held(Mode::kRestore, Mode::kKeepParity, Mode::kAddParity, Mode::kSyncParity); }
  std::size_t waiting() const { return lock_.waiting(); }

 private:
  static unsigned index(Mode mode) { return static_cast<unsigned>(mode); }
  daemon::ModeLock lock_{kBeside};
};

}  // namespace pif::lfs
