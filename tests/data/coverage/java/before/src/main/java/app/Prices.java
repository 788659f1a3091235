package app;
