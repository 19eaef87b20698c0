//! A scripted ACP agent for the demo and the tests.
