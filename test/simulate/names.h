// What the directory must do, as a model: a small set of paths, and what each operation does to them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "pif/base/result.h"
#include "simulate/linear.h"

namespace pif::simulate {

// What a name stands for: nothing, a folder, or a file (its number).
using Meaning = std::uint64_t;
inline constexpr Meaning kNothing = 0;
inline constexpr Meaning kFolder = 1;

// The paths there can be, each by its index; a folder comes before what is in it.
class Paths {
 public:
  std::size_t add(const std::string& path);
  const std::string& text(std::size_t index) const { return texts_[index]; }
  std::optional<std::size_t> parent(std::size_t index) const { return parents_[index]; }
  std::optional<std::size_t> find(const std::string& path) const;
  bool is_inside(std::size_t index, std::size_t folder) const;
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a text stays where it is
  std::vector<std::optional<std::size_t>> parents_;
};

struct NameOp {
  enum class Kind : std::uint8_t { kPublish, kMakeFolder, kRemove, kRename, kSee, kList };
  const Paths* paths = nullptr;
  Kind kind = Kind::kSee;
  std::size_t path = 0;
  std::size_t to = 0;          // of a rename
  Meaning meaning = kNothing;  // published, or seen; kList: a bit for each path that is in the folder
  bool keep = false;           // fail if the target exists
  Code code = Code::kOk;       // how it ended
  Time begin{};
  Time end = kNever;  // kNever: nobody knows whether it was done
  std::string by;

  std::string to_string() const;
};

struct NamesModel {
  using Op = NameOp;
  using State = std::vector<Meaning>;  // by path
  static bool apply(State& state, const Op& op);
  static std::uint64_t hash(const State& state);
};

// Empty if the operations could have happened one after another; else what is wrong with them.
struct NamesReport {
  Verdict verdict = Verdict::kLinearizable;
  std::string text;
};
NamesReport check_names(const Paths& paths, std::vector<NameOp> ops);

}  // namespace pif::simulate
