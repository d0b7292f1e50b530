// Headers that nearly every file of the agent and of its host includes, beyond objects.h.
#include "agent/contract/context.h"
#include "agent/contract/journal.h"
#include "agent/contract/ports.h"
#include "client/api_client.h"
