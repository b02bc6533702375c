// How a daemon says that it serves: sd_notify(3)'s protocol, a datagram to the socket that $NOTIFY_SOCKET names.
#pragma once

namespace pif::cluster {

// "READY=1" to whoever started this process, if he wants to know. Any thread.
void notify_ready();

}  // namespace pif::cluster
