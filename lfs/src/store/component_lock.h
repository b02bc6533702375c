// Who may do what to a component beside whom, for operations that wait meanwhile. The table is the only place that says
// so for these; what a component goes through as a whole is its stage (component_stage.h).
#pragma once

#include <array>
#include <cstdint>

#include "pif/daemon/mode_lock.h"

namespace pif::lfs {

enum class Use : std::uint8_t {
  kKeepParity,  // its parity of others' rows is written, and entered in the catalogue
  kAddParity,   // parity of rows that are not published yet is written
  kSyncParity,  // that is made durable, and entered in the catalogue
};
inline constexpr unsigned kUses = 3;

inline constexpr std::uint32_t use_bit(Use use) { return 1u << static_cast<unsigned>(use); }

// [use]: which may be held beside it, as bits by use.
inline constexpr std::array<std::uint32_t, kUses> kUsesBeside = {
    0,                                                     // kKeepParity: only one writes .par and .pap
    use_bit(Use::kSyncParity),                             // kAddParity: the same
    use_bit(Use::kAddParity) | use_bit(Use::kSyncParity),  // kSyncParity: syncs are shared
};

class ComponentLock {
 public:
  using Held = daemon::ModeLock::Held;
  [[nodiscard]] Held acquire(daemon::Fibers& fibers, Use use) { return lock_.acquire(fibers, index(use)); }
  [[nodiscard]] Held try_acquire(Use use) { return lock_.try_acquire(index(use)); }
  static void relax(Held& held, Use use) { held.relax(index(use)); }
  bool is_held(Use use) const { return lock_.is_held(index(use)); }
  std::size_t waiting() const { return lock_.waiting(); }

 private:
  static unsigned index(Use use) { return static_cast<unsigned>(use); }
  daemon::ModeLock lock_{kUsesBeside};
};

}  // namespace pif::lfs
