#include "pif/access/component_access.h"

#include <chrono>

#include "pif/access/rebuilt_read.h"
#include "pif/base/assert.h"
#include "pif/wire/convert.h"

namespace pif::access {

namespace {

constexpr Duration kStandInTimeout = std::chrono::minutes(50);  // below what an LFS allows

}  // namespace

component::Tail tail_of(const proto::ComponentState& state) {
  return {state.rows(), state.bytes(), state.data_tail_sum(), state.index_tail_sum()};
}

ComponentAccess::ComponentAccess(component::Storage& storage, const FileParts& parts, LfsIndex lfs, DataPath wanted)
    : storage_(storage), parts_(parts), lfs_(lfs), wanted_(wanted) {
  PIF_ASSERT(lfs < parts.layout.width(), lfs, parts.layout.width());
  if (wanted_ == DataPath::kMessages) path_ = DataPath::kMessages;
}

// ---- attaching -----------------------------------------------------------------------------------------------------

Result<bool> ComponentAccess::admit(const Link& link) {
  if (link.passes_descriptors) return true;
  if (wanted_ == DataPath::kDescriptors) {
    return fail(Code::kUnsupported, "descriptors cannot be had over this route: use unix, or let data go by message",
                link.name);
  }
  path_ = DataPath::kMessages;
  return false;
}

// A component that cannot be had by descriptor, but perhaps by message, or, if its LFS is away, from its parity.
Status ComponentAccess::refused(Error error) {
  if (!is_stood_in() && can_rebuild(parts_, error)) {
    if (!reader_) path_ = DataPath::kMessages;
    is_away_ = true;
    return {};
  }
  if (wanted_ != DataPath::kAuto || error.code != Code::kUnsupported) return fail(std::move(error));
  path_ = DataPath::kMessages;
  return {};
}

// Descriptors came, and the disk behind them fails: its LFS may answer all the same.
Status ComponentAccess::cannot_adopt(Error error) {
  if (error.node.empty()) error.node = parts_.nodes[lfs_].name();
  const bool may_ask = wanted_ == DataPath::kAuto && !is_stood_in() && !can_be_rebuilt(parts_);
  if (!may_ask) return refused(std::move(error));
  path_ = DataPath::kMessages;
  return {};
}

// Requests for it go to another LFS than the layout says.
bool ComponentAccess::is_stood_in() const {
  const auto lfs = static_cast<int>(lfs_);
  return lfs < parts_.file_layout.nodes_size() && parts_.file_layout.nodes(lfs) != parts_.nodes[lfs_].id();
}

BulkRequest ComponentAccess::attach_request(bool create) {
  BulkRequest request;
  request.lfs = lfs_;
  request.replaceable = can_be_rebuilt(parts_) && !is_stood_in();
  if (is_stood_in()) {  // it may have to restore the rows first, and to hear that it is to
    request.timeout = kStandInTimeout;
    request.patient = true;
  }
  request.make = [this, create] {
    net::Packet packet;
    proto::Attach& attach = *packet.envelope.mutable_attach();
    if (create)
      *attach.mutable_create() = parts_.shape(lfs_);
    else
      attach.set_file(parts_.file.value);
    if (is_stood_in()) {
      attach.set_instead_of(lfs_);
      *attach.mutable_file_length() = wire::proto_of(parts_.file_length);
    }
    return packet;
  };
  request.admit = [this](const Link& link) { return admit(link); };
  request.refused = [this](Error error) { return refused(std::move(error)); };
  return request;
}

void ComponentAccess::open_reader(Requests& requests) {
  PIF_ASSERT(!parts_.creating, lfs_);
  if (!reader_ && !by_message()) attach_again(requests);
}

void ComponentAccess::attach_again(Requests& requests, std::function<Status()> then) {
  BulkRequest request = attach_request(false);
  request.take = [this, then](net::Packet& reply) -> Status {
    PIF_TRY(take_reader(reply));
    return then ? then() : Status();
  };
  request.refused = [this, then](Error error) -> Status {
    PIF_TRY(refused(std::move(error)));
    return then ? then() : Status();
  };
  request.admit = [this](const Link& link) -> Result<bool> {
    // Whoever has attached before reads on with what he has, over whatever route the LFS is reached now.
    return reader_ ? Result<bool>(true) : admit(link);
  };
  requests.add(std::move(request));
}

Status ComponentAccess::take_reader(net::Packet& reply) {
  const component::Tail tail = tail_of(reply.envelope.attach_reply().state());
  generation_ = reply.envelope.attach_reply().state().generation();
  if (reader_) {
    reader_->set_tail(tail);  // the descriptors we have are of the same files
    return {};
  }
  auto files = component::adopt(storage_, parts_.format, std::move(reply.handles));
  if (!files) return cannot_adopt(std::move(files.error()));
  files_ = std::move(*files);
  path_ = DataPath::kDescriptors;
  reader_ = std::make_unique<component::Reader>(shape(), tail, files_);
  return {};
}

void ComponentAccess::open_writer(Requests& requests) {
  PIF_ASSERT(parts_.creating, lfs_);
  if (path_ != DataPath::kAuto) return;
  if (parts_.is_absent(lfs_)) {  // others get its rows, by message
    path_ = DataPath::kMessages;
    return;
  }
  BulkRequest request = attach_request(true);
  request.take = [this](net::Packet& reply) { return take_writer(reply); };
  requests.add(std::move(request));
}

Status ComponentAccess::take_writer(net::Packet& reply) {
  if (files_.data) return {};  // asked for twice
  PIF_TRY_VALUE(files_, component::adopt(storage_, parts_.format, std::move(reply.handles)));
  path_ = DataPath::kDescriptors;
  return {};
}

// ---- what is there -------------------------------------------------------------------------------------------------

void ComponentAccess::show(const component::Tail& tail) {
  PIF_ASSERT(path_ == DataPath::kDescriptors && files_.data != nullptr, path_, tail.rows);
  if (reader_)
    reader_->set_tail(tail);
  else
    reader_ = std::make_unique<component::Reader>(shape(), tail, files_);
}

void ComponentAccess::adopt(component::Files files, const component::Tail& tail) {
  PIF_ASSERT(path_ == DataPath::kAuto && wanted_ != DataPath::kMessages, path_, wanted_);
  PIF_ASSERT(files.data != nullptr, tail.rows);
  path_ = DataPath::kDescriptors;
  files_ = std::move(files);
  show(tail);
}

void ComponentAccess::close() {
  reader_.reset();
  files_ = {};
}

void ComponentAccess::leave_descriptors() {
  close();
  path_ = DataPath::kMessages;
}

}  // namespace pif::access
