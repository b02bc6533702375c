// How each component is reached: by descriptors that its LFS passes, or by message.
#include <fmt/format.h>

#include "file/file_state.h"

namespace pif::client {

component::Tail tail_of(const proto::ComponentState& state) {
  return {state.rows(), state.bytes(), state.data_tail_sum(), state.index_tail_sum()};
}

Result<Port::Way> FileState::way_to(LfsIndex lfs) {
  const DataPath wanted = session->options().data_path;
  if (wanted == DataPath::kMessages || (is_small && wanted == DataPath::kAuto)) return Port::Way::kMessages;
  PIF_TRY_VALUE(const Link link, session->link(parts.nodes[lfs]));
  if (link.passes_descriptors) return Port::Way::kDescriptors;
  if (wanted == DataPath::kAuto) return Port::Way::kMessages;
  return fail(Code::kUnsupported, "descriptors cannot be had over this route: use unix, or let data go by message",
              link.name);
}

Result<net::Packet> FileState::attach(LfsIndex lfs, net::Packet request) {
  const proto::Envelope envelope = request.envelope;
  request.envelope.set_capability(parts.capability);
  auto reply = session->ask_node(parts.nodes[lfs], std::move(request));
  if (reply || reply.error().code != Code::kBadCapability || adopted) return reply;
  PIF_TRY(grant.renew());
  net::Packet again;
  again.envelope = envelope;
  again.envelope.set_capability(parts.capability);
  return session->ask_node(parts.nodes[lfs], std::move(again));
}

namespace {
// A component that cannot be had by descriptor, but perhaps by message.
bool try_messages(const Session& session, const Error& error) {
  return session.options().data_path == DataPath::kAuto && error.code == Code::kUnsupported;
}
}  // namespace

Status FileState::open_reader(LfsIndex lfs) {
  Port& port = ports[lfs];
  if (port.reader || port.way == Port::Way::kMessages) return {};
  if (creating()) return make_readable(lfs);
  PIF_TRY_VALUE(port.way, way_to(lfs));
  if (port.way == Port::Way::kMessages) return {};
  return attach_again(lfs);
}

Status FileState::attach_again(LfsIndex lfs) {
  Port& port = ports[lfs];
  net::Packet request;
  request.envelope.mutable_attach()->set_file(parts.file.value);
  auto reply = attach(lfs, std::move(request));
  if (!reply) {
    if (!try_messages(*session, reply.error())) return fail(std::move(reply.error()));
    port.way = Port::Way::kMessages;
    return {};
  }
  const component::Tail tail = tail_of(reply->envelope.attach_reply().state());
  if (port.reader) {
    port.reader->set_tail(tail);  // the descriptors we have are of the same files
    return {};
  }
  PIF_TRY_VALUE(port.files, component::adopt(session->storage(), parts.format, std::move(reply->handles)));
  port.reader = std::make_unique<component::Reader>(component_shape(), tail, port.files);
  return {};
}

Status FileState::open_writer(LfsIndex lfs) {
  Port& port = ports[lfs];
  if (port.writer || port.way == Port::Way::kMessages) return {};
  PIF_TRY_VALUE(port.way, way_to(lfs));
  if (port.way == Port::Way::kMessages) return {};
  net::Packet request;
  *request.envelope.mutable_attach()->mutable_create() = parts.shape(lfs);
  auto reply = attach(lfs, std::move(request));
  if (!reply) {
    port.way = try_messages(*session, reply.error()) ? Port::Way::kMessages : Port::Way::kUnknown;
    if (port.way == Port::Way::kMessages) return {};
    return fail(std::move(reply.error()));
  }
  PIF_TRY_VALUE(port.files, component::adopt(session->storage(), parts.format, std::move(reply->handles)));
  port.writer = std::make_unique<component::Writer>(component_shape(), component::Tail{}, port.files);
  return {};
}

Status FileState::make_readable(LfsIndex lfs) {
  Port& port = ports[lfs];
  if (port.way == Port::Way::kUnknown) PIF_TRY(open_writer(lfs));
  if (port.way == Port::Way::kMessages) return {};  // only what is staged can be read, see read_staged
  if (!port.writer) return {};
  PIF_TRY(flush_stage(lfs));
  if (port.reader && !port.unfinished) return {};
  PIF_TRY_VALUE(const component::Tail tail, port.writer->finish());
  port.unfinished = false;
  if (port.reader) {
    port.reader->set_tail(tail);
  } else {
    port.reader = std::make_unique<component::Reader>(component_shape(), tail, port.files);
  }
  return {};
}

}  // namespace pif::client
