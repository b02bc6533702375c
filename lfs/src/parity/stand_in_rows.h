// What an LFS that stands in for an absent one (stand_in.h) does with that one's rows: it gets them back from those who
// keep their parity, into files that have no names, and brings those that were written into such files to them.
// One thread, but for what `works` does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parity/keeping.h"
#include "parity/row_streams.h"

namespace pif::lfs {

// A component's files, gone with the last process that has them open.
struct NamelessFiles {
  std::shared_ptr<component::Files> writable;
  std::shared_ptr<component::Files> readable;  // the same; they cannot be written through these
};
// number: another one for each call of this process. Any thread.
[[nodiscard]] Result<NamelessFiles> make_nameless_files(component::Storage& storage, const std::string& root,
                                                        const component::Shape& shape, std::uint64_t number);

// The rows of one LFS of a file, which is absent.
struct AbsentRows {
  proto::ComponentShape shape;  // of the absent LFS's component; made and layout are what it says
  component::Shape made;
  parity::Layout layout;
  std::unique_ptr<access::Grant> grant;  // for the LFSs that keep their parity

  LfsIndex index() const { return shape.index(); }
};

class RowsBack : public std::enable_shared_from_this<RowsBack> {
 public:
  // tail: of what is in the files. On the loop's thread; perhaps before start() returns.
  using Done = std::function<void(const Status&, const component::Tail& tail)>;

  // keeping outlives what runs of it. file_length: of the whole file. files: new.
  RowsBack(Keeping& keeping, AbsentRows rows, const FileLength& file_length, NamelessFiles files);
  void start(Done done);
  // What they take, about.
  static std::uint64_t bytes_of(const AbsentRows& rows, const FileLength& file_length);

 private:
  void step();
  void fetch_more();
  void ask(access::Requests& requests, const RowStreams::PiecePtr& piece);
  [[nodiscard]] Status take(access::Requests& requests, const RowStreams::PiecePtr& piece, net::Packet& reply);
  void write(RowStreams::Batch batch);
  [[nodiscard]] Status write_away(const RowStreams::Batch& batch);
  [[nodiscard]] Status finish();
  void fail_with(Error error);
  void end(const Status& status);

  Keeping& keeping_;
  const AbsentRows lost_;
  const FileLength file_length_;
  const std::uint64_t rows_;
  const std::vector<LfsIndex> keepers_;
  const NamelessFiles files_;
  RowStreams streams_;
  component::Writer writer_;  // over files_.writable
  component::Tail tail_;
  Done done_;
  Status written_;  // of the work under way
  unsigned errands_ = 0;
  bool is_writing_ = false;
  std::optional<Error> failure_;
};

class RowsAway : public std::enable_shared_from_this<RowsAway> {
 public:
  using Done = std::function<void(const Status&)>;

  // keeping outlives what runs of it. files: complete, up to `tail`; every byte read is checked. view: that the keepers
  // must go by. The grant has kMayCreate.
  RowsAway(Keeping& keeping, AbsentRows rows, std::shared_ptr<component::Files> files, const component::Tail& tail,
           std::uint64_t view);
  void start(Done done) {
    done_ = std::move(done);
    read_next();
  }

 private:
  // Of the rows of a batch those that one keeper gets: from `first`, keepers_.size() apart.
  struct Part {
    Row first = 0;
    std::vector<std::uint32_t> lengths;  // variable records
    std::uint64_t count = 0;
    std::vector<std::byte> data;
  };
  void read_next();
  [[nodiscard]] Status read();
  [[nodiscard]] Status read_fixed();
  [[nodiscard]] Status read_variable();
  void add(Row row, std::span<const std::byte> bytes);
  void send();
  void ask(access::Requests& requests, std::size_t stream);
  void end(const Status& status);

  Keeping& keeping_;
  const AbsentRows lost_;
  const std::shared_ptr<component::Files> files_;
  const component::Reader reader_;
  const std::uint64_t view_;
  const std::vector<LfsIndex> keepers_;
  Row next_ = 0;             // to be read
  std::vector<Part> parts_;  // of the present batch, by stream
  Status read_status_;
  Done done_;
};

}  // namespace pif::lfs
