// This LFS stands in for one that is absent in the view (docs/PROTOCOL.md "Stand-ins"): workers of tools that would run
// beside that one run here, and get descriptors of what it would have.
//
// Of an input: its rows, rebuilt, in files without names. All who ask for the same share them; they go when nobody has
// asked for a while, or space is short. Of an output: new files without names; when they are sealed their rows go to
// the LFSs that keep their parity, as copies, which Gather makes durable. Whoever puts such rows here does not need
// them to stay: this LFS forgets them, and an absent one gets them from their keepers when it is rebuilt. One thread.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "parity/stand_in_rows.h"

namespace pif::lfs {

class StandIn {
 public:
  // Outlived by keeping.
  explicit StandIn(Keeping& keeping);

  // Takes an Attach, Seal or Gather, whose requester may ask that, of what an absent LFS would have, and answers it
  // later. False: it is not one, and nothing has happened.
  bool take(const Request& request);
  // Once per turn.
  void tick();
  Time next_deadline() const;

 private:
  // An Attach; it waits a little where this LFS does not know yet that the other one is absent.
  struct Ask {
    ReplyToken token = 0;
    net::PeerId peer = 0;
    proto::ComponentShape shape;  // of the absent LFS
    bool is_new = false;          // an output
    FileLength file_length;       // of an input
    std::uint64_t epoch = 0;
    Time patience{};
  };
  using FileKey = std::pair<std::uint64_t, LfsIndex>;
  using Key = std::tuple<std::uint64_t, LfsIndex, std::uint64_t, std::uint64_t>;  // and the file's length
  struct Input {
    NamelessFiles files;
    proto::ComponentState state;
    bool is_ready = false;
    std::vector<ReplyToken> waiting;  // while it is not
    Time used{};                      // the last time
  };
  enum class Step : std::uint8_t { kFilling, kClosing /* writers go */, kCopying, kSealed, kFailed };
  struct Output {
    NamelessFiles files;  // until they are sealed; writable ones until Seal
    proto::ComponentState state;
    net::PeerId worker = 0;  // who attached it
    std::uint64_t epoch = 0;
    std::uint32_t uid = 0;  // of who seals it
    Step step = Step::kFilling;
    std::vector<ReplyToken> waiting;  // of Seal
    Time patience{};                  // with its writers
    Time next_look{};
    Time used{};
  };

  void attach(const Request& request, const proto::Attach& asked);
  [[nodiscard]] Result<proto::ComponentShape> shape_asked(const Request& request);
  // Whether it was answered, or is about to be.
  bool serve(const Ask& ask);
  [[nodiscard]] Status serve_input(const Ask& ask);
  [[nodiscard]] Status restore(const Ask& ask, const Key& key);  // asked for first
  void restored(const Key& key, const Status& status, const component::Tail& tail);
  [[nodiscard]] Status serve_output(const Ask& ask);
  void answer(ReplyToken token, const proto::ComponentState& state, component::Files& files);

  bool is_stood_in(const proto::ComponentShape& shape) const;
  void seal(const Request& request, const proto::Seal& asked);
  [[nodiscard]] Status begin_seal(const Request& request, const proto::Seal& asked);
  [[nodiscard]] Status check_seal(const proto::Seal& asked) const;
  void look_for_writers(const FileKey& key, Output& output);
  [[nodiscard]] Status copy_away(const FileKey& key, Output& output);
  void end_seal(const FileKey& key, const Status& status);

  [[nodiscard]] bool is_absent(const proto::ComponentShape& shape) const;
  // rights: of the capability that keepers are shown; uid: whose it is.
  [[nodiscard]] Result<AbsentRowsPtr> absent_rows(const proto::ComponentShape& shape, std::uint64_t epoch,
                                                  std::uint32_t rights, std::uint32_t uid);
  [[nodiscard]] Status check_keepers(const AbsentRows& rows) const;
  std::string name_of_node(std::uint32_t node) const;
  // Nobody will seal it any more, as far as can be known here.
  bool is_over(const FileKey& key, const Output& output);
  void drop_old();
  bool drop_spare_inputs(Time unused_since);

  Keeping& keeping_;
  LfsContext& context_;
  std::vector<Ask> asks_;  // that wait
  std::map<Key, Input> inputs_;
  std::map<FileKey, Output> outputs_;
  std::uint64_t files_made_ = 0;
  Time next_drop_{};
};

}  // namespace pif::lfs
