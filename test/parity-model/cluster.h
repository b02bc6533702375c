// What both models have in common: the three LFSs of one parity group, and the views that name who is absent.
//
// D0 is LFS 0 of the file and its sequencer. D1 holds the other rows of each group. P holds the group's parity, and is
// the sequencer's deputy. Record n is at D0 if n is even, else at D1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pif::parity_model {

using Byte = std::uint8_t;

inline constexpr std::size_t kMembers = 2;  // LFSs whose rows a page covers
inline constexpr std::size_t kD0 = 0, kD1 = 1, kP = 2;
inline constexpr std::size_t kNodes = 3;
inline constexpr std::size_t kViewsMax = 10;

constexpr Byte byte(std::size_t value) { return static_cast<Byte>(value); }
constexpr Byte bit(std::size_t place) { return static_cast<Byte>(1u << place); }
constexpr Byte with(Byte set, std::size_t place) { return static_cast<Byte>(set | bit(place)); }
constexpr Byte without(Byte set, std::size_t place) { return static_cast<Byte>(set & ~bit(place)); }
constexpr Byte below(Byte set, std::size_t place) { return static_cast<Byte>(set & (bit(place) - 1u)); }
constexpr bool has(Byte set, std::size_t place) { return (set & bit(place)) != 0; }
constexpr std::size_t member_of(std::size_t record) { return record % kMembers; }
constexpr std::size_t page_of(std::size_t record) { return record / kMembers; }

// The node named is absent while it is lost. Rebuilding differs from lost in nothing that the models hold.
enum class Kind : Byte { kAllMembers, kLost, kReturning };

struct View {
  Kind kind = Kind::kAllMembers;
  Byte node = 0;
  [[nodiscard]] bool is_absent(std::size_t which) const { return kind == Kind::kLost && node == which; }
  [[nodiscard]] bool is_returning(std::size_t which) const { return kind == Kind::kReturning && node == which; }
};

// All views that the server has made.
struct Views {
  std::array<View, kViewsMax> list{};
  Byte newest = 0;
  [[nodiscard]] const View& at(Byte number) const { return list[number]; }
  [[nodiscard]] const View& last() const { return list[newest]; }
  [[nodiscard]] bool full() const { return newest + 1u == kViewsMax; }
  void add(View view) { list[++newest] = view; }
};

// What happened, in words: `text`, with a record or another number, and the node where it happened.
struct Label {
  const char* text = "";
  int number = -1;
  int node = -1;
  [[nodiscard]] std::string to_string() const;
};

// A step that need not happen: a crash, a loss, an appender that dies, somebody who brings a lost node back.
enum class Need : Byte { kWillHappen, kAccident };

template <typename State>
struct Successor {
  Label label;
  State state;
  bool accident = false;
  const char* violation = nullptr;
};

}  // namespace pif::parity_model
