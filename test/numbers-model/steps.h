// All that can happen next in a state.
#pragma once

#include <string>
#include <vector>

#include "numbers-model/rules.h"
#include "numbers-model/state.h"

namespace pif::numbers {

// What happened, in words: `text`, with a number (a file, an LFS, an append) and the LFS where it happened.
struct Label {
  const char* text = "";
  int number = -1;
  int lfs = -1;
  std::string to_string() const;
};

struct Successor {
  Label label;
  State state;
  const char* violation = nullptr;
};

class Steps {
 public:
  using State = numbers::State;

  Steps(const Bounds& bounds, Mutant mutant) : bounds_(bounds), mutant_(mutant) {}

  [[nodiscard]] State first() const;
  // All successors of `state`, valid until the next call, each with what was wrong in the step itself.
  const std::vector<Successor>& expand(const State& state);
  // What is wrong with `state` itself, or null.
  [[nodiscard]] const char* check(const State& state) const;

 private:
  // One line each of: the server's life, meeting an LFS, files, what an LFS asks about, appends, accidents, persons.
  void server_steps(const State& s);
  void lfs_steps(const State& s, std::size_t lfs);
  void heartbeat(const State& s, std::size_t lfs);
  void create_steps(const State& s);
  void create_file(const State& s, Byte layout);
  void creator_steps(const State& s);
  void remove_steps(const State& s);
  void component_steps(const State& s, std::size_t lfs);
  void component_step(const State& s, std::size_t lfs, std::size_t file);
  void unknown_component(const State& s, std::size_t lfs, std::size_t file);
  void append_steps(const State& s);
  void reserve(const State& s);
  void append_step(const State& s, std::size_t slot);
  void write_rows(const State& s, std::size_t slot);
  void overwrite_steps(const State& s);
  void crash_steps(const State& s);
  void snapshot_steps(const State& s);
  void restore_steps(const State& s);
  void person_steps(const State& s);

  // The first half of a heartbeat, or of a start: the LFS presents itself, the server answers.
  void meet(const State& s, std::size_t lfs);
  void accept(State s, std::size_t lfs, Label label);
  void note(State& s, std::size_t lfs) const;
  void offer(State& s, std::size_t lfs) const;
  [[nodiscard]] bool pair_fits(const Directory& directory, Pair pair) const;
  [[nodiscard]] bool age_fits(const State& s, std::size_t lfs) const;
  [[nodiscard]] const char* served_although_old(const State& s, std::size_t lfs) const;

  void transact(State& s) const;
  void begin_range(State& s) const;
  // A durable change of an LFS's root.
  void commit(State& s, std::size_t lfs) const;
  void drop_component(State& s, std::size_t lfs, std::size_t file) const;
  [[nodiscard]] Contents contents(const State& s, std::size_t lfs) const;
  [[nodiscard]] Files with_same_id(const State& s, std::size_t file) const;
  [[nodiscard]] Age generation(const State& s) const;
  [[nodiscard]] bool shorter_than_directory(const State& s) const;
  [[nodiscard]] const char* append_file_wrong(const State& s) const;
  [[nodiscard]] const char* mixed_without_mark(const State& s) const;
  [[nodiscard]] const char* lfs_wrong(const State& s, std::size_t lfs) const;
  [[nodiscard]] std::size_t rows_at() const { return bounds_.lfss - 1u; }
  [[nodiscard]] bool is(Mutant mutant) const { return mutant_ == mutant; }

  void emit(Label label, const State& state, const char* violation = nullptr);

  Bounds bounds_;
  Mutant mutant_;
  std::vector<Successor> out_;
};

// Whether `lfs` has been admitted by the present run of the server, and works.
inline bool serves(const State& s, std::size_t lfs) {
  return s.memory[lfs].mode == LfsMode::kServing && (s.heard & bit(lfs)) != 0;
}

}  // namespace pif::numbers
