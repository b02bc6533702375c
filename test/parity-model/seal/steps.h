// All that can happen next in a state of `seal`.
#pragma once

#include <vector>

#include "parity-model/model.h"
#include "parity-model/seal/rules.h"
#include "parity-model/seal/state.h"

namespace pif::parity_model::seal {

class Steps {
 public:
  using State = seal::State;
  using Successor = parity_model::Successor<State>;

  Steps(const Bounds& bounds, Weak weak) : bounds_(bounds), weak_(weak) {}

  [[nodiscard]] State first() const;
  // All successors of `state`, valid until the next call, each with what was wrong in the step itself.
  const std::vector<Successor>& expand(const State& state);
  // What is wrong with `state` itself, or null.
  [[nodiscard]] const char* check(const State& state) const;
  // Whether the file is committed, nothing is under way, and all who are not lost serve in the newest view.
  [[nodiscard]] bool is_end(const State& state) const;

 private:
  // create.cc
  void create_steps(const State& s);
  void write_created_row(const State& s, std::size_t record);
  void seal_member(const State& s, std::size_t member);
  void gather_created(const State& s);
  void commit(const State& s);
  void start_over(const State& s);
  [[nodiscard]] bool can_gather(const State& s) const;
  // append.cc
  void append_steps(const State& s);
  void reserve(const State& s, std::size_t sequencer);
  void send_rows(const State& s, Append State::*which);
  void send_row(const State& s, Append State::*which, std::size_t record);
  void send_copy(const State& s, Append State::*which, std::size_t record);
  void cover(const State& s, Append State::*which);
  [[nodiscard]] bool takes_append(const State& s, std::size_t node, const Append& append) const;
  void end_append(const State& s);
  [[nodiscard]] bool needs_copy(const State& s, const Append& append, std::size_t record) const;
  [[nodiscard]] bool needs_cover(const State& s, const Append& append) const;
  [[nodiscard]] bool is_complete(const State& s) const;
  // sequencer.cc
  void sequencer_steps(const State& s);
  void publish_steps(const State& s);
  void tell_published(const State& s);
  void settle(const State& s);
  void take_over(const State& s);
  // parity.cc
  void sync_steps(const State& s);
  void sync_member(const State& s, std::size_t member);
  void sync_parity(const State& s);
  void fold_steps(const State& s);
  // losses.cc
  void crash_steps(const State& s);
  void crash(const State& s, std::size_t node);
  void view_steps(const State& s);
  void adopt(const State& s, std::size_t node);
  void declare_lost(const State& s);
  void return_steps(const State& s);
  void rebuild_round(const State& s, std::size_t node);
  void fetch_rest(const State& s, std::size_t node);
  void open(const State& s, std::size_t node);
  void learn_lost(State& s, std::size_t node) const;
  bool fetch(State& s, std::size_t node, std::size_t length) const;
  [[nodiscard]] bool have_adopted(const State& s, std::size_t but) const;
  // check.cc
  [[nodiscard]] const char* check_loss(const State& s, std::size_t lost) const;
  [[nodiscard]] const char* check_pages(const State& s) const;
  [[nodiscard]] const char* check_readers(const State& s) const;

  // Whether `node` takes a request of `view`. It adopts a newer one first.
  [[nodiscard]] bool takes(const State& s, std::size_t node, Byte view) const;
  // Whether whoever acts in `view` leaves `node` out.
  [[nodiscard]] bool left_out(const State& s, Byte view, std::size_t node) const;
  // `length` records are published: what they hold is right from now on.
  void publish(State& s, std::size_t length) const;
  // The append is over; its requests may still come.
  void leave(State& s) const;
  [[nodiscard]] bool may_still_come(const State& s) const;
  // The sequencer forgets what it granted.
  void stop(State& s, std::size_t sequencer) const;
  [[nodiscard]] bool is(Weak weak) const { return weak_ == weak; }

  void emit(Label label, const State& state, Need need = Need::kWillHappen, const char* violation = nullptr) {
    out_.push_back({label, state, need == Need::kAccident, violation});
    if (!may_still_come(state)) out_.back().state.late = {};
  }

  Bounds bounds_;
  Weak weak_;
  std::vector<Successor> out_;
};

}  // namespace pif::parity_model::seal
