// How one component is reached: through descriptors that its LFS passes, or by message. It is found out, and attached,
// by requests; what they need is added here, and has happened when they have run.
//
//   DataPath: kAuto (not known yet) -> kDescriptors or kMessages; kDescriptors -> kMessages if the LFS will not attach
//   again; any -> kMessages once descriptors are left
//
// Thread-safety: none; reader() may be used by any thread while nothing else is called.
#pragma once

#include <functional>
#include <memory>

#include "pif/access/data_path.h"
#include "pif/access/file_parts.h"
#include "pif/access/requests.h"
#include "pif/component/component.h"

namespace pif::access {

// A tail as the catalogue tells it. Not checked: what is read by it is.
component::Tail tail_of(const proto::ComponentState& state);

class ComponentAccess {
 public:
  // storage and parts outlive it. wanted: kAuto takes descriptors where the LFS passes them.
  ComponentAccess(component::Storage& storage, const FileParts& parts, LfsIndex lfs, DataPath wanted);
  ComponentAccess(const ComponentAccess&) = delete;  // reader and writers point to its files
  ComponentAccess& operator=(const ComponentAccess&) = delete;

  // Which LFS of the file; how its rows travel, as far as that is known by now; and what every such component is like.
  LfsIndex lfs() const { return lfs_; }
  DataPath path() const { return path_; }
  bool by_message() const { return path_ == DataPath::kMessages; }
  component::Shape shape() const { return parts_.stored_shape(); }
  // It was to be attached, and its LFS is away, or does not have it: its rows can be rebuilt.
  bool is_away() const { return is_away_ && !has_reader(); }
  // Open once path() is kDescriptors, until close(); null before and after. Valid as long as this object.
  component::Files& files() { return files_; }

  // Until rows of a committed file can be read by path(). Adds nothing if they can be already. This outlives the
  // requests, or their drop_all(), here and below.
  void open_reader(Requests& requests);
  // Until rows of a file being created can be written by path(): makes the component there. For an absent LFS it is
  // kMessages, and nothing is added: RowSink sends them to others.
  void open_writer(Requests& requests);
  // The reader's tail anew, after the component has grown or its last chunk has changed; `then` runs afterwards.
  void attach_again(Requests& requests, std::function<Status()> then = {});

  // The descriptors of a component whose tail is known came another way: nothing is asked of its LFS.
  void adopt(component::Files files, const component::Tail& tail);

  // For direct reads: there is a reader once open_reader(), adopt() or show() has made one, until close(). The
  // reference is valid as long.
  bool has_reader() const { return reader_ != nullptr; }
  const component::Reader& reader() const { return *reader_; }
  // The newest range that had appended there when the reader was made or attached again; 0: none.
  std::uint64_t generation() const { return generation_; }
  // For a file being created: readers see what its writer has put into the files so far.
  void show(const component::Tail& tail);
  // Forgets reader and descriptors: an LFS refuses to seal while anybody could still write.
  void close();
  // The same for good: whatever is asked for from now on goes by message.
  void leave_descriptors();

 private:
  [[nodiscard]] bool is_stood_in() const;
  BulkRequest attach_request(bool create);
  [[nodiscard]] Result<bool> admit(const Link& link);
  [[nodiscard]] Status refused(Error error);
  [[nodiscard]] Status cannot_adopt(Error error);
  [[nodiscard]] Status take_reader(net::Packet& reply);
  [[nodiscard]] Status take_writer(net::Packet& reply);

  component::Storage& storage_;
  const FileParts& parts_;
  const LfsIndex lfs_;
  const DataPath wanted_;
  DataPath path_ = DataPath::kAuto;
  bool is_away_ = false;
  std::uint64_t generation_ = 0;
  component::Files files_;
  std::unique_ptr<component::Reader> reader_;
};

}  // namespace pif::access
