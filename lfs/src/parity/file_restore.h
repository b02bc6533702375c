// What an LFS with an empty disk had of one file comes back: its rows from those who keep their parity, and the parity
// that it kept, gathered from its members. All of it is made durable before the catalogue has the component, which
// nobody sees before. One thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "parity/keeping.h"
#include "parity/rate_limit.h"
#include "parity/row_streams.h"
#include "requests/managing.h"

namespace pif::lfs {

class FileRestore : public std::enable_shared_from_this<FileRestore> {
 public:
  enum class Outcome : std::uint8_t {
    kRestored,
    kNothing,  // nothing of it belongs here, it is here already, or it was removed
    kFailed,
  };
  // error: of kFailed. On the loop's thread; perhaps before start() returns.
  using Done = std::function<void(Outcome, const Error& error)>;

  // All but `file` outlive what runs of it.
  FileRestore(Keeping& keeping, Managing& managing, RateLimit& rate, proto::ListLostReply::One file);
  void start(Done done);
  // What had to wait for the rate goes on, if it may.
  void advance() { step(); }

 private:
  [[nodiscard]] Status parse();
  void find_length();
  void begin();
  bool is_deputy() const;  // of LFS 0 (deputy.h)
  [[nodiscard]] Result<ComponentPtr> make_component();
  [[nodiscard]] Status begin_rows();
  [[nodiscard]] Status begin_parity();
  void step();
  void fetch_more();
  void ask(access::Requests& requests, const RowStreams::PiecePtr& piece);
  [[nodiscard]] Status take(access::Requests& requests, const RowStreams::PiecePtr& piece, net::Packet& reply);
  void write(RowStreams::Batch batch);
  [[nodiscard]] Status write_away(const RowStreams::Batch& batch, bool is_last);  // from the loop
  [[nodiscard]] Status check_tail() const;
  void seal();
  void synced(const Status& status);
  void fill_in(proto::ComponentState& state) const;
  void fail_with(Error error);
  void end(Outcome outcome, const Error& error = {});

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  RateLimit& rate_;
  const proto::ListLostReply::One file_;
  Done done_;

  proto::ComponentShape shape_;  // of the component here
  std::optional<Keeper> keeper_;
  std::vector<LfsIndex> keepers_;  // of the rows: of row q that of index q mod size
  std::unique_ptr<access::Grant> grant_;
  FileLength file_length_;
  std::uint64_t grants_ = 0;  // of the sequencer; 0 if this is its LFS
  std::uint64_t rows_ = 0;
  ComponentPtr component_;

  std::optional<RowStreams> streams_;
  std::shared_ptr<component::Files> files_;
  std::optional<component::Writer> writer_;  // over files_
  component::Tail tail_;
  Status written_;  // of the work under way
  std::shared_ptr<component::ParityFiles> parity_;
  std::uint64_t parity_bytes_ = 0;

  unsigned errands_ = 0;  // requests and parity under way
  bool is_writing_ = false;
  bool has_rows_ = false;  // all are written
  bool is_sealing_ = false;
  std::optional<Error> failure_;
};

// About how many bytes of a file are on LFS `index` of it, parity too.
std::uint64_t bytes_on(const parity::Layout& layout, LfsIndex index, const Format& format, const FileLength& length);

}  // namespace pif::lfs
