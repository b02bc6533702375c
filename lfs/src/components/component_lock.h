// Each component has one lock, first come first served. This table of its modes says which may be held beside one
// another (docs/ARCHITECTURE.md "Who may be at a component"). Only the lock knows what is under way. One thread.
#pragma once

#include <array>
#include <cstdint>

#include "pif/daemon/mode_lock.h"

namespace pif::lfs {

enum class Mode : std::uint8_t {
  kFill,           // rows are written to a new component, by message or through descriptors
  kSeal,           // it is complete: its bytes become durable, then its entry in the catalogue
  kAppend,         // rows behind its end become durable, then its new length in the catalogue; or some are dropped
  kOverwrite,      // images of its chunks are in a batch of the redo log, or about to be
  kCheckpoint,     // its in-place data becomes durable, so that the redo log can forget the images
  kRewrite,        // a scrub writes bad chunks anew, or drops bad rows behind the published ones
  kRestore,        // it is made, or catches up with what others wrote without it: rows and parity
  kInput,          // a worker has its descriptors
  kKeepParity,     // its parity of others' rows is written, and entered in the catalogue
  kAddParity,      // parity of rows that are not published yet is written
  kSyncParity,     // that is made durable, and entered in the catalogue
  kClose,          // its files are closed, which somebody opens again when they are needed
  kNoteCommitted,  // that its file is committed is on its way to the catalogue
};
inline constexpr unsigned kModes = 13;

template <typename... Modes>
constexpr std::uint32_t bits_of(Modes... modes) {
  return ((1u << static_cast<unsigned>(modes)) | ... | 0u);
}
inline constexpr std::uint32_t kParityBits = bits_of(Mode::kKeepParity, Mode::kAddParity, Mode::kSyncParity);
// Those that have nothing to do with parity.
inline constexpr std::uint32_t kBesideParity =
    bits_of(Mode::kFill, Mode::kSeal, Mode::kAppend, Mode::kOverwrite, Mode::kCheckpoint, Mode::kRewrite, Mode::kInput,
            Mode::kNoteCommitted);
inline constexpr std::uint32_t kNoteBit = bits_of(Mode::kNoteCommitted);

// [mode]: which may be held beside it.
inline constexpr std::array<std::uint32_t, kModes> kBeside = {
    kParityBits | kNoteBit | bits_of(Mode::kFill),       // kFill: each write is done in one go
    kParityBits | kNoteBit,                              // kSeal
    kParityBits | kNoteBit,                              // kAppend
    kParityBits | kNoteBit | bits_of(Mode::kOverwrite),  // kOverwrite: several of one batch
    kParityBits | kNoteBit | bits_of(Mode::kInput),      // kCheckpoint
    kParityBits | kNoteBit,                              // kRewrite
    kNoteBit | bits_of(Mode::kInput),                    // kRestore: published rows stay as they are
    kParityBits | kNoteBit | bits_of(Mode::kCheckpoint, Mode::kRestore, Mode::kInput, Mode::kClose),  // kInput
    kBesideParity,                                                 // kKeepParity: only one writes .par and .pap
    kBesideParity | bits_of(Mode::kSyncParity),                    // kAddParity: the same
    kBesideParity | bits_of(Mode::kAddParity, Mode::kSyncParity),  // kSyncParity: syncs are shared
    kNoteBit | bits_of(Mode::kInput, Mode::kClose),                // kClose
    ((1u << kModes) - 1) & ~kNoteBit,                              // kNoteCommitted: once
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
  // As ModeLock has them.
  bool may_acquire(Mode mode) const { return lock_.may_acquire(index(mode)); }
  bool is_wanted(Mode mode) const { return lock_.is_wanted(index(mode)); }
  bool is_free() const { return lock_.is_free(); }
  // Its parity is being written.
  bool keeps_parity() const { return is_held(Mode::kRestore, Mode::kKeepParity, Mode::kAddParity, Mode::kSyncParity); }
  std::size_t waiting() const { return lock_.waiting(); }

 private:
  static unsigned index(Mode mode) { return static_cast<unsigned>(mode); }
  daemon::ModeLock lock_{kBeside};
};

}  // namespace pif::lfs
