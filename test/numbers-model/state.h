// One state of the model: what is durable, what is in memory, and what only the model knows. All of it is bytes without
// padding, so that equal states have equal bytes.
//
// Files are numbered in the order of their creates (bit k of a mask is file k), whatever ids they were given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pif::numbers {

using Byte = std::uint8_t;
using Files = std::uint8_t;  // a set of files

inline constexpr std::size_t kLfsMax = 2;
inline constexpr std::size_t kFilesMax = 4;
inline constexpr std::size_t kRunsMax = 8;
inline constexpr std::size_t kSnapshotsMax = 2;
inline constexpr std::size_t kSlots = 2;  // appends under way or given up, whose rows may still come
inline constexpr Byte kIdsPerRange = 16;
inline constexpr Byte kAnyIncarnation = 255;  // of a record, after accept-old
inline constexpr Files kAppended = 1;         // the file that is appended to: the first
inline constexpr std::size_t kSequencer = 0;

constexpr Files bit(std::size_t file) { return static_cast<Files>(1u << file); }

// A short sequence of appends' numbers (1..15), by row.
struct Rows {
  std::uint16_t cells = 0;
  Byte at(std::size_t row) const { return static_cast<Byte>((cells >> (4 * row)) & 15u); }
  Byte length() const {
    Byte out = 0;
    while (out < 4 && at(out) != 0) ++out;
    return out;
  }
  void truncate(std::size_t rows) { cells = static_cast<std::uint16_t>(cells & ((1u << (4 * rows)) - 1u)); }
  void push(Byte append) { cells = static_cast<std::uint16_t>(cells | (append << (4 * length()))); }
  bool starts_with(Rows other) const {
    Rows mine = *this;
    mine.truncate(other.length());
    return mine == other;
  }
  bool operator==(const Rows&) const = default;
};

// How far a directory had come. Run 0: nothing was heard.
struct Pair {
  Byte run = 0;
  Byte index = 0;
  bool operator==(const Pair&) const = default;
};

// What an LFS's root held when it was reported; known to the model only.
struct Contents {
  Rows published;  // at the sequencer
  Rows rows;       // published rows of appends
  bool operator==(const Contents&) const = default;
};

struct Age {
  Byte incarnation = 0;
  Byte number = 0;
  bool operator==(const Age&) const = default;
};

// The directory's row about an LFS.
struct Record {
  Byte confirmed = 0;
  Byte offered = 0;
  Byte number = 0;
  Files components = 0;  // the model's
  Contents contents;     // the model's
  Byte actual = 0;       // the model's: the LFS's number at the directory's moment, heard or not
  Byte unused = 0;
};

// What is durable at the server.
struct Directory {
  Byte index = 0;
  Byte run_count = 0;
  std::array<Pair, kRunsMax> runs{};  // run, and the index of its first transaction
  Byte next_id = 1;
  Files committed = 0;
  Files pending = 0;
  Files marked = 0;                     // may mix old and new, since a stale LFS was accepted
  std::array<Files, kLfsMax> doomed{};  // by LFS that has not answered
  Byte length = 0;                      // of the appended file, as of the last close
  Byte unused = 0;
  std::uint16_t abandoned = 0;  // runs of histories that accept-old has given up
  std::array<Record, kLfsMax> records{};
};

// What is durable at an LFS.
struct Root {
  Age age;
  Pair kept;
  Byte highest_id = 0;
  Files sealed = 0;
  Files settled = 0;
  Files quarantined = 0;
  Files found = 0;                        // in lost+found
  Byte generation = 0;                    // n of the sequencer's; in memory only, but for one mutant
  std::array<Byte, kFilesMax> made_in{};  // run of a sealed component
  Age row_generation;                     // (incarnation of the sequencer, n) of the newest rows here
  Rows published;                         // at the sequencer: its length, and the appends that made it
  Rows rows;
  Byte version = 0;     // of its rows of file 0: the overwrite that made it
  Byte changed = 0;     // the number of that change
  Byte taken_back = 0;  // the incarnation that began by a person's word
  Byte unused = 0;

  Files components() const { return static_cast<Files>(sealed | settled); }
};

// An LFS starts by being offered an incarnation, keeping it, and hearing that the server has confirmed it. Then it
// serves.
enum class LfsMode : Byte { kDown, kOffered, kKept, kServing, kStale };
enum class ServerMode : Byte { kDown, kWaiting, kServing, kRefused };

// What an LFS holds in memory, and what it last said in a heartbeat that the server has not written yet.
struct LfsMemory {
  LfsMode mode = LfsMode::kDown;
  Byte offered = 0;
  Pair told;
  Byte noted = 0;  // whether there is a note
  Age note;
  Files note_components = 0;
  Contents note_contents;
};

enum class AppendPhase : Byte { kNone, kGranted, kWritten, kPublished };

struct Append {
  AppendPhase phase = AppendPhase::kNone;
  Byte append = 0;
  Byte row = 0;
  Age generation;
  bool operator==(const Append&) const = default;
};

enum class Part : Byte { kNone, kServer, kLfs0, kLfs1 };

struct Snapshot {
  Part part = Part::kNone;
  Byte unused = 0;
  Directory directory;
  Root root;
};

struct State {
  Directory directory;
  std::array<Root, kLfsMax> roots{};
  std::array<Snapshot, kSnapshotsMax> snapshots{};
  std::uint16_t existed = 1;  // pairs of versions at LFS 0 and 1 that file 0 had at some moment
  std::array<LfsMemory, kLfsMax> memory{};
  std::array<Append, kSlots> appends{};
  // The server's memory.
  ServerMode server = ServerMode::kDown;
  Byte run = 0;
  Byte heard = 0;  // LFSs that have presented themselves to this run, and run
  // A create under way. Its client lives as long as it likes.
  Byte creating = 0;  // file + 1
  Byte made = 0;      // LFSs that have sealed it
  Byte capability_run = 0;
  // The model's.
  Files alive = 0;  // committed and acknowledged, not removed
  Byte runs = 0;    // random numbers used for runs: one more is a new one
  std::array<Byte, kFilesMax> ids{};
  std::array<Byte, kFilesMax> layouts{};  // LFSs of a file
  Byte files = 0;
  Byte removes = 0, appended = 0, crashes = 0, restores = 0;
  Byte written = 0;                   // overwrites
  Byte lapsed = 0;                    // an LFS lost a change of which nobody had heard
  std::array<Byte, kLfsMax> known{};  // the number that the directory had of each LFS when the server started
  Byte server_restored = 0;
  Byte lfs_restored = 0;  // LFSs
  Byte unused = 0;
};

static_assert(std::has_unique_object_representations_v<State>, "equal states have equal bytes");
static_assert(std::is_trivially_copyable_v<State>);

}  // namespace pif::numbers
