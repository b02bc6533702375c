// All that can happen next in a state of `append`.
#pragma once

#include <vector>

#include "parity-model/append/rules.h"
#include "parity-model/append/state.h"
#include "parity-model/model.h"

namespace pif::parity_model::append {

class Steps {
 public:
  using State = append::State;
  using Successor = parity_model::Successor<State>;

  Steps(const Bounds& bounds, Weak weak) : bounds_(bounds), weak_(weak) {}

  [[nodiscard]] State first() const;
  // All successors of `state`, valid until the next call, each with what was wrong in the step itself.
  const std::vector<Successor>& expand(const State& state);
  // What is wrong with `state` itself, or null.
  [[nodiscard]] const char* check(const State& state) const;
  // Whether no request is left, no range is open, and all who are not lost serve in the newest view.
  [[nodiscard]] bool is_end(const State& state) const;

 private:
  // requests.cc
  void request_steps(const State& s, std::size_t place);
  void row_comes(const State& s, std::size_t place);
  void copy_comes(const State& s, std::size_t place);
  void done_comes(const State& s, std::size_t place);
  void note_comes(const State& s, std::size_t place);
  void fold(const State& s);
  [[nodiscard]] bool takes(const State& s, std::size_t node, const Append& append) const;
  [[nodiscard]] bool is_older(const State& s, std::size_t node, const Append& append) const;
  // sequencer.cc
  void sequencer_steps(const State& s, std::size_t sequencer);
  void reserve(const State& s, std::size_t sequencer);
  void cancel(const State& s, std::size_t sequencer);
  void send_note(const State& s, std::size_t place);
  void publish_range(const State& s, std::size_t place);
  void settle(const State& s);
  void take_over(const State& s);
  void tell_published(const State& s, std::size_t sequencer);
  void deputy_tells(const State& s);
  [[nodiscard]] bool works(const State& s, std::size_t sequencer) const;
  [[nodiscard]] bool is_open(const State& s, const Append& append) const;
  [[nodiscard]] std::size_t open_count(const State& s, std::size_t sequencer) const;
  [[nodiscard]] bool lower_are_noted(const State& s, const Append& append) const;
  // losses.cc
  void crash_steps(const State& s);
  void view_steps(const State& s);
  void adopt(const State& s, std::size_t node);
  void declare_lost(const State& s);
  void return_steps(const State& s);
  void open(const State& s, std::size_t node);
  void learn_lost(State& s, std::size_t node) const;
  void fetch(State& s, std::size_t node, std::size_t length) const;
  // check.cc
  [[nodiscard]] const char* check_loss(const State& s, std::size_t lost) const;
  [[nodiscard]] const char* check_readers(const State& s) const;

  void publish(State& s, std::size_t length) const;
  // From now on `node` refuses what is older than `generation`. Ranges above `length` are cancelled by that.
  void raise(State& s, std::size_t node, Byte generation, std::size_t length) const;
  [[nodiscard]] Byte raised(const State& s, std::size_t node, Byte generation) const;
  void forget_late(State& s) const;
  [[nodiscard]] bool is(Weak weak) const { return weak_ == weak; }

  void emit(Label label, const State& state, Need need = Need::kWillHappen) {
    out_.push_back({label, state, need == Need::kAccident, nullptr});
    forget_late(out_.back().state);
  }

  Bounds bounds_;
  Weak weak_;
  std::vector<Successor> out_;
};

}  // namespace pif::parity_model::append
