// This LFS stands in for one that is absent in the view (docs/PROTOCOL.md "Stand-ins"): workers of tools that would run
// beside that one run here, and get descriptors of what it would have.
//
// An input is rebuilt into files without names. All who ask for the same share them; they go when nobody has asked for
// a while, or space is short. An output gets new files without names. When they are sealed, their rows go to the LFSs
// that keep their parity, as copies, which Gather makes durable. Whoever puts such rows here does not need them to
// stay: this LFS forgets them, and an absent one gets them from their keepers when it is rebuilt. One thread.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "stand_in/stand_in_rows.h"

namespace pif::lfs {

class StandIn final : public ViewWatcher, public SpaceMaker {
 public:
  // Outlived by keeping.
  explicit StandIn(Keeping& keeping);

  // The handler of an Attach, Seal or Gather that is for an absent LFS; the requester may ask that. Null: the request
  // is none of these.
  const Handler* find(const Request& request) const;

 private:
  void view_adopted() override { views_.notify(); }
  bool make_space() override { return drop_spare_inputs(context_.now()); }

  using FileKey = std::pair<std::uint64_t, LfsIndex>;
  using Key = std::tuple<std::uint64_t, LfsIndex, std::uint64_t, std::uint64_t>;  // and the file's length
  struct Input {
    explicit Input(daemon::Fibers& fibers) : ended(fibers) {}
    NamelessFiles files;
    proto::ComponentState state;
    std::optional<Status> restored;  // nothing: it is being done
    daemon::Event ended;             // that
    Time used{};                     // the last time
  };
  using InputPtr = std::shared_ptr<Input>;
  enum class Step : std::uint8_t { kFilling, kSealing, kSealed, kFailed };
  struct Output {
    explicit Output(daemon::Fibers& fibers) : ended(fibers) {}
    NamelessFiles files;  // until they are sealed; writable ones until Seal
    proto::ComponentState state;
    net::PeerId worker = 0;  // who attached it
    std::uint64_t epoch = 0;
    std::uint32_t uid = 0;  // of who seals it
    Step step = Step::kFilling;
    Status sealed;  // how that ended the last time
    daemon::Event ended;
    Time used{};
  };
  using OutputPtr = std::shared_ptr<Output>;

  [[nodiscard]] Result<net::Packet> attach(const Request& request, const proto::Attach& asked);
  [[nodiscard]] Result<net::Packet> seal(const Request& request, const proto::Seal& asked);
  [[nodiscard]] Status gather(const Request& request, const proto::Gather& asked);

  [[nodiscard]] Result<proto::ComponentShape> shape_asked(const Request& request);
  // Waits a little where this LFS does not know yet that the other one is absent. kOldView: it is not.
  [[nodiscard]] Status await_absence(const proto::ComponentShape& shape);
  [[nodiscard]] Result<InputPtr> input_of(const Request& request, const proto::ComponentShape& shape);
  [[nodiscard]] Result<InputPtr> begin_input(const proto::ComponentShape& shape, const FileLength& file_length,
                                             AbsentRowsPtr rows);
  [[nodiscard]] Status restore(Input& input, AbsentRowsPtr rows, const FileLength& file_length);
  [[nodiscard]] Result<OutputPtr> output_of(const Request& request, const proto::ComponentShape& shape);
  [[nodiscard]] Result<OutputPtr> begin_output(const proto::ComponentShape& shape);
  [[nodiscard]] static Result<net::Packet> descriptors(const Request& request, const proto::ComponentState& state,
                                                       component::Files& files);

  [[nodiscard]] Status check_seal(const proto::Seal& asked) const;
  [[nodiscard]] static Status check_seal(const Output& output, const proto::Seal& asked);
  // Failed, it can be asked for again: who wrote cannot write any more.
  void bring_away(Output& output, const Request& request);
  [[nodiscard]] Status await_writers(const Output& output);
  [[nodiscard]] Status copy_away(const Output& output);

  bool is_stood_in(const proto::ComponentShape& shape) const;
  [[nodiscard]] bool is_absent(const proto::ComponentShape& shape) const;
  Error not_absent(const proto::ComponentShape& shape) const;
  // rights: of the capability that keepers are shown; uid: whose it is.
  [[nodiscard]] Result<AbsentRowsPtr> absent_rows(const proto::ComponentShape& shape, std::uint64_t epoch,
                                                  std::uint32_t rights, std::uint32_t uid);
  [[nodiscard]] Status check_keepers(const AbsentRows& rows) const;
  std::string name_of_node(std::uint32_t node) const;
  // Nobody will seal it any more, as far as can be known here.
  bool is_over(const FileKey& key, const Output& output);
  // A fiber, as long as this object lives.
  void drop_unused();
  bool drop_spare_inputs(Time unused_since);

  Keeping& keeping_;
  LfsContext& context_;
  Operations operations_;  // of absent LFSs
  daemon::Event views_;    // one was adopted
  std::map<Key, InputPtr> inputs_;
  std::map<FileKey, OutputPtr> outputs_;
  std::uint64_t files_made_ = 0;
};

}  // namespace pif::lfs
